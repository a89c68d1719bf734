package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// mount makes the tree at source, as the node sees it, appear at target in a container.
type mount struct {
	source, target string
	readOnly       bool
	optional       bool // left out if there is no source
}

// tree is a mount taken off the node's view, not yet attached in the container.
type tree struct {
	mount
	handle int
}

// planMounts lists a container's mounts, outer ones first. hostDevices are the node's device files; only a
// privileged container gets all of them.
func planMounts(config Config, container *cri.ContainerConfig, hostDevices []string) []mount {
	privileged := container.GetLinux().GetSecurityContext().GetPrivileged()
	mounts := []mount{{source: "/proc", target: "/proc"}, {source: "/sys", target: "/sys", readOnly: !privileged}}
	if !privileged {
		hostDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
	}
	for _, path := range hostDevices {
		mounts = append(mounts, mount{source: path, target: path, optional: true})
	}
	for _, path := range slices.Concat(config.Path, config.Readable) {
		source := filepath.Join(config.Lower, path)
		mounts = append(mounts, mount{source: source, target: path, readOnly: true, optional: true})
	}
	for _, device := range container.GetDevices() {
		mounts = append(mounts, mount{source: device.GetHostPath(), target: device.GetContainerPath(), optional: true})
	}
	for _, m := range container.GetMounts() {
		mounts = append(mounts, mount{source: m.GetHostPath(), target: m.GetContainerPath(), readOnly: m.GetReadonly()})
	}
	slices.SortStableFunc(mounts, func(a, b mount) int { return cmp.Compare(depth(a.target), depth(b.target)) })
	return mounts
}

func depth(path string) int {
	return strings.Count(strings.TrimSuffix(filepath.Clean(path), "/"), "/")
}

// listDevices names the node's device files and folders of such, without those that every container has anew.
func listDevices() []string {
	entries, _ := os.ReadDir("/dev")
	var devices []string
	for _, entry := range entries {
		own := slices.Contains([]string{"pts", "shm", "ptmx"}, entry.Name())
		if !own && (entry.IsDir() || entry.Type()&os.ModeDevice != 0) {
			devices = append(devices, filepath.Join("/dev", entry.Name()))
		}
	}
	return devices
}

// detach copies the mounts' sources out of the calling thread's mount namespace.
func detach(mounts []mount) (trees []tree, err error) {
	for _, m := range mounts {
		handle, err := m.open()
		if m.optional && errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			closeTrees(trees)
			return nil, fmt.Errorf("mount %s at %s: %w", m.source, m.target, err)
		}
		trees = append(trees, tree{mount: m, handle: handle})
	}
	return trees, nil
}

func (m mount) open() (handle int, err error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE
	handle, err = unix.OpenTree(unix.AT_FDCWD, m.source, flags)
	if err != nil || !m.readOnly {
		return handle, err
	}
	if err := setReadOnly(handle, "", unix.AT_EMPTY_PATH); err != nil {
		_ = unix.Close(handle)
		return 0, err
	}
	return handle, nil
}

func setReadOnly(directory int, path string, flags uint) error {
	return unix.MountSetattr(directory, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// attach puts the tree at its target in the calling thread's root.
func (t tree) attach() error {
	if err := t.makeTarget(); err != nil {
		return fmt.Errorf("make the mount point %s: %w", t.target, err)
	}
	const flags = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_SYMLINKS
	if err := unix.MoveMount(t.handle, "", unix.AT_FDCWD, t.target, flags); err != nil {
		return fmt.Errorf("mount %s at %s: %w", t.source, t.target, err)
	}
	return nil
}

func (t tree) makeTarget() error {
	if _, err := os.Stat(t.target); err == nil {
		return nil
	}
	var source unix.Stat_t
	if err := unix.Fstat(t.handle, &source); err != nil {
		return err
	}
	if source.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(t.target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(t.target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(t.target, nil, 0o644)
}

func closeTrees(trees []tree) {
	for _, t := range trees {
		_ = unix.Close(t.handle)
	}
}
