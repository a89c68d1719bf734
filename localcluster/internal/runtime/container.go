package runtime

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exit codes of a container whose program did not start, as Docker and containerd report them.
const (
	exitNotFound   = 127
	exitNotStarted = 128
)

// container is one attempt of a pod's container: created, running, exited, in this order.
type container struct {
	id         string
	sandbox    *sandbox
	config     *cri.ContainerConfig
	createdAt  int64
	root       rootfs
	process    process
	recordPath string
	exited     chan struct{} // closed when the state is exited

	mu         sync.Mutex // guards what follows
	state      cri.ContainerState
	startedAt  int64
	finishedAt int64
	exitCode   int32
	reason     string
	message    string
	cmd        *exec.Cmd
	log        *logFile
	namespaces *namespaces // nil unless programs can enter them
}

func newContainer(config Config, pod *sandbox, spec *cri.ContainerConfig) *container {
	config = config.forImage(spec.GetImage().GetImage())
	id := newID()
	scratch := filepath.Join(config.StateDir, id)
	hostname := pod.config.GetHostname()
	if hostname == "" {
		hostname = config.Node
	}
	return &container{
		id:         id,
		sandbox:    pod,
		config:     spec,
		createdAt:  time.Now().UnixNano(),
		root:       planRoot(config, scratch, spec, pod.config.GetHostname()),
		process:    planProcess(config, spec, hostname),
		recordPath: recordPath(config.Records, id),
		exited:     make(chan struct{}),
	}
}

// start runs the container's program, or ends the container with a StartError.
func (c *container) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != cri.ContainerState_CONTAINER_CREATED {
		return status.Errorf(codes.FailedPrecondition, "container %s was started before", c.id)
	}
	if err := c.run(); err != nil {
		c.finish(startExitCode(err), "StartError", err.Error())
		return err
	}
	c.state = cri.ContainerState_CONTAINER_RUNNING
	c.startedAt = time.Now().UnixNano()
	c.writeRecord()
	go c.reap()
	return nil
}

func startExitCode(err error) int32 {
	if errors.Is(err, exec.ErrNotFound) {
		return exitNotFound
	}
	return exitNotStarted
}

// run starts the program with its output going to the log; c.mu must be held.
func (c *container) run() (err error) {
	if c.log, err = openLog(c.logPath()); err != nil {
		return err
	}
	line := commandLine(c.config)
	c.cmd = &exec.Cmd{Args: line, SysProcAttr: &syscall.SysProcAttr{}}
	stdout, stderr, err := c.openOutput()
	if err == nil {
		c.cmd.Stdout, c.cmd.Stderr = stdout, stderr
		err = c.launch()
		_, _ = stdout.Close(), stderr.Close()
	}
	if err != nil {
		c.log.finish()
	}
	return err
}

func (c *container) openOutput() (stdout, stderr *os.File, err error) {
	if stdout, err = c.log.pipe("stdout", c.process.credential); err != nil {
		return nil, nil, err
	}
	if stderr, err = c.log.pipe("stderr", c.process.credential); err != nil {
		return nil, nil, errors.Join(err, stdout.Close())
	}
	return stdout, stderr, nil
}

func (c *container) launch() error {
	return onOwnThread(func() error {
		own, err := c.root.enter()
		if err != nil {
			return err
		}
		if err := c.process.launch(c.cmd); err != nil {
			own.close()
			return err
		}
		c.namespaces = own
		return nil
	})
}

// reap waits for the end of the program, which is the end of the container, whatever else runs in it.
func (c *container) reap() {
	_ = c.cmd.Wait()
	c.mu.Lock()
	own := c.namespaces
	c.namespaces = nil // from here on nothing enters
	c.mu.Unlock()
	own.killAll()
	own.close()
	c.log.finish()
	code := exitCode(c.cmd.ProcessState)
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish(code, reason, "")
}

// finish notes the container's end; c.mu must be held.
func (c *container) finish(code int32, reason, message string) {
	c.state = cri.ContainerState_CONTAINER_EXITED
	c.exitCode, c.reason, c.message = code, reason, message
	c.finishedAt = time.Now().UnixNano()
	c.writeRecord()
	close(c.exited)
}

// signal sends a signal to the program if it runs.
func (c *container) signal(signal os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == cri.ContainerState_CONTAINER_RUNNING {
		_ = c.cmd.Process.Signal(signal)
	}
}

// kill ends the container, started or not, and returns when it has ended.
func (c *container) kill() {
	c.mu.Lock()
	if c.state == cri.ContainerState_CONTAINER_CREATED {
		c.finish(128+int32(unix.SIGKILL), "Error", "killed before it was started")
	}
	c.mu.Unlock()
	c.signal(unix.SIGKILL)
	<-c.exited
}

func (c *container) logPath() string {
	if c.config.GetLogPath() == "" || c.sandbox.config.GetLogDirectory() == "" {
		return os.DevNull
	}
	return filepath.Join(c.sandbox.config.GetLogDirectory(), c.config.GetLogPath())
}

func (c *container) reopenLog() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces == nil {
		return status.Errorf(codes.FailedPrecondition, "container %s is not running", c.id)
	}
	return c.log.reopen()
}

// pid returns the program's process ID, also after its end; c.mu must be held.
func (c *container) pid() int {
	if c.cmd == nil || c.cmd.Process == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// writeRecord publishes the state; c.mu must be held. A container does not fail for want of its record.
func (c *container) writeRecord() {
	if err := c.record().write(c.recordPath); err != nil {
		slog.Error("cannot write a container's record", "container", c.id, "error", err)
	}
}

// remove ends the container and deletes what it left on disk.
func (c *container) remove() error {
	c.kill()
	if err := os.Remove(c.recordPath); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(c.root.scratch)
}
