package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"gpushare.io/localcluster/internal/streaming"
)

// execTerminal runs a program with a terminal of the container's own.
func (c *container) execTerminal(
	cmd *exec.Cmd, stdin io.Reader, stdout io.Writer, resize <-chan streaming.TerminalSize,
) error {
	control, err := c.enterWithTerminal(cmd)
	if err != nil {
		return err
	}
	defer control.Close()
	if stdin != nil {
		go func() { _, _ = io.Copy(control, stdin) }()
	}
	go followSize(control, resize)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(stdout, control) // ends, with an error, when nobody holds the terminal any more
	}()
	_ = cmd.Wait()
	_ = control.SetReadDeadline(time.Now().Add(outputGrace))
	<-copied
	return nil
}

func (c *container) enterWithTerminal(cmd *exec.Cmd) (control *os.File, err error) {
	err = c.inside(func() error {
		master, terminal, err := openTerminal()
		if err != nil {
			return fmt.Errorf("open a terminal: %w", err)
		}
		defer terminal.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
		cmd.SysProcAttr.Setctty = true
		cmd.Env = []string{"TERM=xterm"} // unless the container says otherwise
		if err := c.process.launch(cmd); err != nil {
			return errors.Join(err, master.Close())
		}
		control = master
		return nil
	})
	return control, err
}

// openTerminal returns the two ends of a new terminal in the calling thread's /dev/pts.
func openTerminal() (control, terminal *os.File, err error) {
	if control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	var number int
	err = withDescriptor(control, func(descriptor int) (err error) {
		if number, err = unix.IoctlGetInt(descriptor, unix.TIOCGPTN); err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(descriptor, unix.TIOCSPTLCK, 0)
	})
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	return control, terminal, nil
}

func followSize(control *os.File, resize <-chan streaming.TerminalSize) {
	for size := range resize {
		_ = withDescriptor(control, func(descriptor int) error {
			dimensions := &unix.Winsize{Row: size.Height, Col: size.Width}
			return unix.IoctlSetWinsize(descriptor, unix.TIOCSWINSZ, dimensions)
		})
	}
}

// withDescriptor calls f with a file's descriptor, safely beside a Close and without making reads block.
func withDescriptor(file *os.File, f func(descriptor int) error) error {
	connection, err := file.SyscallConn()
	if err != nil {
		return err
	}
	failed := connection.Control(func(descriptor uintptr) { err = f(int(descriptor)) })
	return errors.Join(failed, err)
}
