package runtime

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// deathTimeout bounds the wait for killed processes; one that the kernel holds longer is given up.
const deathTimeout = 10 * time.Second

// namespaces are a container's own. Processes stay in the node's PID namespace, where signals reach them as
// they do any process, so that it is the mount namespace that tells which processes belong to a container.
type namespaces struct {
	name       string // what /proc/<pid>/ns/mnt of a member points to
	mount, uts *os.File
}

// newNamespaces moves the calling thread into namespaces of its own.
func newNamespaces() (*namespaces, error) {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
		return nil, fmt.Errorf("unshare the mount namespace: %w", err)
	}
	name, err := os.Readlink("/proc/thread-self/ns/mnt")
	if err != nil {
		return nil, err
	}
	mount, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		return nil, err
	}
	uts, err := os.Open("/proc/thread-self/ns/uts")
	if err != nil {
		_ = mount.Close()
		return nil, err
	}
	return &namespaces{name: name, mount: mount, uts: uts}, nil
}

// enter moves the calling thread into the namespaces.
func (n *namespaces) enter() error {
	// The kernel refuses setns to threads that share their root directory with others.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare the root directory: %w", err)
	}
	if err := unix.Setns(int(n.mount.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the mount namespace: %w", err)
	}
	if err := unix.Setns(int(n.uts.Fd()), unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("enter the UTS namespace: %w", err)
	}
	return nil
}

func (n *namespaces) close() {
	_ = n.mount.Close()
	_ = n.uts.Close()
}

// killAll kills the processes that are left in the namespaces and returns when they are dead. Only a chain of
// processes that each start the next and end at once can outrun it.
func (n *namespaces) killAll() {
	deadline := time.Now().Add(deathTimeout)
	// A process may fork between the listing and its death, hence once more until none is left.
	for time.Now().Before(deadline) {
		handles := n.killMembers()
		if len(handles) == 0 {
			return
		}
		for _, handle := range handles {
			awaitDeath(handle, deadline)
			_ = unix.Close(handle)
		}
	}
}

// killMembers kills every process in the namespaces and returns a pidfd of each.
func (n *namespaces) killMembers() (handles []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !n.contain(pid) {
			continue
		}
		handle, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if n.contain(pid) { // still: the number may have passed to another process
			_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
		}
		handles = append(handles, handle)
	}
	return handles
}

// contain says whether a process is in the namespaces. A zombie is in none.
func (n *namespaces) contain(pid int) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return err == nil && name == n.name
}

func awaitDeath(handle int, deadline time.Time) {
	for {
		fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, int(time.Until(deadline).Milliseconds())+1)
		if err != unix.EINTR || time.Now().After(deadline) {
			return
		}
	}
}
