package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	kubeletLog = "/var/log/kubelet.log"
	// KubeletLink is the name of the link in a node's folder of programs.
	KubeletLink = "kubelet"
)

// kubeletKeeper keeps one kubelet running, unless it is held back.
type kubeletKeeper struct {
	flags []string

	mutex    sync.Mutex
	current  *exec.Cmd
	stopped  bool
	released chan struct{} // not nil while the kubelet is held back; closed when it may start again
}

func newKubeletKeeper(flags []string) *kubeletKeeper { return &kubeletKeeper{flags: flags} }

// run starts the kubelet again and again until stop.
func (k *kubeletKeeper) run() {
	for {
		k.awaitRelease()
		kubelet, err := k.start()
		if kubelet == nil && err == nil {
			return
		}
		if err == nil {
			err = kubelet.Wait()
		}
		fmt.Fprintf(os.Stderr, "kubelet ended (%v), see %s\n", err, kubeletLog)
		time.Sleep(restartPause)
	}
}

// hold ends the kubelet as a service manager does, and keeps it from starting until release.
func (k *kubeletKeeper) hold() {
	k.mutex.Lock()
	if k.released == nil {
		k.released = make(chan struct{})
	}
	k.mutex.Unlock()
	k.end()
}

// release lets a kubelet start that was held back.
func (k *kubeletKeeper) release() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.released != nil {
		close(k.released)
		k.released = nil
	}
}

func (k *kubeletKeeper) awaitRelease() {
	k.mutex.Lock()
	released := k.released
	k.mutex.Unlock()
	if released != nil {
		<-released
	}
}

// start returns nothing once the keeper was stopped.
func (k *kubeletKeeper) start() (*exec.Cmd, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.stopped {
		return nil, nil
	}
	log, err := os.OpenFile(kubeletLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	k.current = exec.Command(kubeletProgram(), k.flags...)
	k.current.Args[0] = "kubelet"
	k.current.Stdout, k.current.Stderr = log, log
	return k.current, k.current.Start()
}

// kubeletProgram is the program of another minor where the node has been given one.
func kubeletProgram() string {
	if program, err := os.Readlink(filepath.Join(programFolder, KubeletLink)); err == nil {
		return filepath.Join(imageFolder, program)
	}
	return "/proc/self/exe"
}

// kill ends the kubelet like a crash.
func (k *kubeletKeeper) kill() { k.signal(syscall.SIGKILL) }

// stop ends the kubelet for good.
func (k *kubeletKeeper) stop() {
	k.mutex.Lock()
	k.stopped = true
	k.mutex.Unlock()
	k.release()
	k.end()
}

// end returns when the kubelet has ended, the hard way if it takes too long. One that is paused takes no SIGTERM.
func (k *kubeletKeeper) end() {
	k.signal(syscall.SIGTERM)
	k.signal(syscall.SIGCONT)
	for deadline := time.Now().Add(kubeletPatience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !k.signal(syscall.Signal(0)) {
			return
		}
	}
	k.kill()
}

// signal tells whether there was a kubelet to signal.
func (k *kubeletKeeper) signal(signal syscall.Signal) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.current != nil && k.current.Process != nil && k.current.Process.Signal(signal) == nil
}
