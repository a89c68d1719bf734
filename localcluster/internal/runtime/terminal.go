package runtime

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// execTerminal runs a program with a terminal of the container's own.
func (c *container) execTerminal(
	cmd *exec.Cmd, stdin io.Reader, stdout io.Writer, resize <-chan remotecommand.TerminalSize,
) error {
	var control *os.File
	err := c.inside(func() (err error) {
		var terminal *os.File
		if control, terminal, err = openTerminal(); err != nil {
			return fmt.Errorf("open a terminal: %w", err)
		}
		defer terminal.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		cmd.SysProcAttr.Setctty = true
		return c.process.launch(cmd)
	})
	if control != nil {
		defer control.Close()
	}
	if err != nil {
		return err
	}
	if stdin != nil {
		go func() { _, _ = io.Copy(control, stdin) }()
	}
	go followSize(control, resize)
	_, _ = io.Copy(stdout, control) // ends, with an error, when the last holder of the terminal does
	_ = cmd.Wait()
	return nil
}

// openTerminal returns the two ends of a new terminal in the calling thread's /dev/pts.
func openTerminal() (control, terminal *os.File, err error) {
	if control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	return control, terminal, err
}

func followSize(control *os.File, resize <-chan remotecommand.TerminalSize) {
	for size := range resize {
		_ = unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ,
			&unix.Winsize{Row: size.Height, Col: size.Width})
	}
}
