// Package supervisor starts a cluster, watches it and serves commands.
//
// It is two processes. The outer one lives among the host's processes and holds what the host sees: the lock
// and the API's listening socket. The inner one is process 1 of the cluster's own PID, mount and network
// namespaces; when it dies, the kernel ends every process of the cluster, so nothing can be left behind.
package supervisor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"gpushare.io/localcluster/internal/config"
)

const (
	// OuterCommand runs the outer process; its argument is the configuration file.
	OuterCommand = "supervise"
	// InnerCommand runs the inner process; the outer one starts it.
	InnerCommand = "supervise-inside"

	// The first file that a child inherits through exec.Cmd.ExtraFiles.
	listenerDescriptor = 3
)

// RunOuter runs a cluster until it is told to stop, its owner goes away, or a component dies.
func RunOuter() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: %s CONFIG.json", OuterCommand)
	}
	// The parent-death signal follows the thread that started the child, not the process.
	runtime.LockOSThread()
	cluster, err := config.Read(os.Args[1])
	if err != nil {
		return err
	}
	lock, err := acquire(cluster.Directory)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := clearLeftovers(cluster.Directory); err != nil {
		return err
	}
	inner, err := startInner(cluster, os.Args[1])
	if err != nil {
		return err
	}
	ended := await(inner, ending(cluster.Detach))
	return errors.Join(ended, removeCgroups(cluster.Directory))
}

// acquire takes the lock file and writes our PID into it, for those who want to stop the cluster.
func acquire(directory config.Directory) (*os.File, error) {
	if err := os.MkdirAll(string(directory), 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(directory.Lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("a cluster is already running in %s; stop it first or use another name", directory)
	}
	if err := lock.Truncate(0); err != nil {
		return nil, err
	}
	_, err = fmt.Fprint(lock, os.Getpid())
	return lock, err
}

// clearLeftovers removes what an earlier cluster left, and nothing that is not ours.
func clearLeftovers(directory config.Directory) error {
	ours := []string{
		directory.Control(), directory.Kubeconfig(), directory.PKI(""),
		directory.Etcd(), directory.Logs(), filepath.Dir(string(directory.Node("any"))),
	}
	for _, path := range ours {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func startInner(cluster config.Cluster, configFile string) (*exec.Cmd, error) {
	listener, err := net.Listen("tcp", cluster.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address, or port 0 for a free one", cluster.Listen, err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	inner := exec.Command("/proc/self/exe", InnerCommand, configFile)
	inner.Stdout, inner.Stderr = os.Stderr, os.Stderr
	inner.ExtraFiles = []*os.File{file}
	inner.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		// Ctrl-C in a terminal is for the outer process alone.
		Setsid: true,
	}
	if err := inner.Start(); err != nil {
		return nil, fmt.Errorf("cannot create namespaces: %w; run as root with all capabilities (in a container: --privileged)", err)
	}
	return inner, nil
}

// ending is closed when the cluster shall end: by a signal, or because the owner's end of standard input closed.
func ending(detached bool) <-chan struct{} {
	ended := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	ownerGone := make(chan struct{})
	if !detached {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(ownerGone)
		}()
	}
	go func() {
		select {
		case <-signals:
		case <-ownerGone:
		}
		close(ended)
	}()
	return ended
}

func await(inner *exec.Cmd, ended <-chan struct{}) error {
	died := make(chan error, 1)
	go func() { died <- inner.Wait() }()
	select {
	case <-ended:
		// Wait returns once the kernel has ended every process of the namespace.
		_ = inner.Process.Kill()
		<-died
		return nil
	case err := <-died:
		return errors.Join(errors.New("the cluster ended by itself"), err)
	}
}
