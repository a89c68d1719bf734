package runtime

import (
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// onOwnThread runs f on an operating system thread that ends with it, so that f may change the thread's
// namespaces, root directory and privileges; the processes that f starts inherit them.
func onOwnThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		goruntime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread cannot end, and /proc/<pid> shows its namespaces as the process's.
			// While it is held here, the next goroutine runs on another.
			result <- onOwnThread(f)
			goruntime.UnlockOSThread()
			return
		}
		result <- f()
	}()
	return <-result
}
