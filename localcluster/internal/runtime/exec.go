package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"gpushare.io/localcluster/internal/streaming"
)

// outputGrace is how long output is waited for after a program's end: a child in the background may hold it.
const outputGrace = time.Second

// newCommand prepares a program to be run in a container; its session is killed when ctx is done.
func newCommand(ctx context.Context, line []string) (*exec.Cmd, error) {
	if len(line) == 0 {
		return nil, status.Error(codes.InvalidArgument, "an exec needs a command")
	}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = outputGrace
	return cmd, nil
}

// enter starts a further program in a running container.
func (c *container) enter(cmd *exec.Cmd) error {
	return c.inside(func() error { return c.process.launch(cmd) })
}

// inside runs f on a thread in the namespaces of a running container.
func (c *container) inside(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces == nil {
		return status.Errorf(codes.FailedPrecondition, "container %s is not running", c.id)
	}
	return onOwnThread(func() error {
		if err := c.namespaces.enter(); err != nil {
			return err
		}
		return f()
	})
}

func (s *server) ExecSync(ctx context.Context, request *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	c, err := s.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	if timeout := time.Duration(request.GetTimeout()) * time.Second; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return c.execSync(ctx, request.GetCmd())
}

func (c *container) execSync(ctx context.Context, line []string) (*cri.ExecSyncResponse, error) {
	cmd, err := newCommand(ctx, line)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := c.enter(cmd); err != nil {
		return nil, err
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		return nil, status.Errorf(codes.DeadlineExceeded, "%q has not ended in time and was killed", line)
	}
	return &cri.ExecSyncResponse{
		Stdout:   stdout.Bytes(),
		Stderr:   stderr.Bytes(),
		ExitCode: exitCode(cmd.ProcessState),
	}, nil
}

func (s *server) Exec(_ context.Context, request *cri.ExecRequest) (*cri.ExecResponse, error) {
	if _, err := s.container(request.GetContainerId()); err != nil {
		return nil, err
	}
	return s.streaming.GetExec(request)
}

func (s *server) PortForward(_ context.Context, request *cri.PortForwardRequest) (*cri.PortForwardResponse, error) {
	if _, err := find(s, s.sandboxes, "pod sandbox", request.GetPodSandboxId()); err != nil {
		return nil, err
	}
	return s.streaming.GetPortForward(request)
}

// streams serves the connections of kubectl exec and kubectl port-forward.
type streams struct{ server *server }

func (s streams) Exec(
	ctx context.Context, id string, line []string, stdin io.Reader, stdout, stderr io.WriteCloser, tty bool,
	resize <-chan streaming.TerminalSize,
) error {
	c, err := s.server.container(id)
	if err != nil {
		return err
	}
	cmd, err := newCommand(ctx, line)
	if err != nil {
		return err
	}
	if tty {
		err = c.execTerminal(cmd, stdin, stdout, resize)
	} else {
		err = c.execPipes(cmd, stdin, stdout, stderr)
	}
	if err != nil {
		return err
	}
	if code := exitCode(cmd.ProcessState); code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: int(code)}
	}
	return nil
}

func (c *container) execPipes(cmd *exec.Cmd, stdin io.Reader, stdout, stderr io.Writer) error {
	if stdin != nil {
		// Not cmd.Stdin: Wait would wait for the client to close it.
		pipe, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(pipe, stdin)
			_ = pipe.Close()
		}()
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := c.enter(cmd); err != nil {
		return err
	}
	_ = cmd.Wait()
	return nil
}

func (s streams) Attach(
	context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan streaming.TerminalSize,
) error {
	return errors.New("attach is not supported")
}

func (s streams) PortForward(ctx context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	go func() {
		_, _ = io.Copy(connection, stream)
		_ = connection.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return errors.Join(err, connection.Close(), stream.Close())
}
