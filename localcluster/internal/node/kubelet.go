package node

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const kubeletLog = "/var/log/kubelet.log"

// kubeletKeeper keeps one kubelet running.
type kubeletKeeper struct {
	flags []string

	mutex   sync.Mutex
	current *exec.Cmd
	stopped bool
}

// run starts the kubelet again and again until stop.
func (k *kubeletKeeper) run() {
	for {
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
	k.current = exec.Command("/proc/self/exe", k.flags...)
	k.current.Args[0] = "kubelet"
	k.current.Stdout, k.current.Stderr = log, log
	return k.current, k.current.Start()
}

// kill ends the kubelet like a crash.
func (k *kubeletKeeper) kill() { k.signal(syscall.SIGKILL) }

// stop ends the kubelet for good.
func (k *kubeletKeeper) stop() {
	k.mutex.Lock()
	k.stopped = true
	k.mutex.Unlock()
	k.signal(syscall.SIGTERM)
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
