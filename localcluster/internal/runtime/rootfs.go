package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// rootfs describes a container's root directory: the machine's, below a writable layer and the mounts.
type rootfs struct {
	lower       string
	scratch     string // holds the writable layer
	hostname    string // empty for the node's
	directory   string // the working directory, made if it is missing
	readOnly    bool
	mounts      []mount
	traversable []string // paths whose ancestors any user may pass
}

func planRoot(config Config, scratch string, container *cri.ContainerConfig, hostname string) rootfs {
	return rootfs{
		lower:       config.Lower,
		scratch:     scratch,
		hostname:    hostname,
		directory:   workingDirectory(container),
		readOnly:    container.GetLinux().GetSecurityContext().GetReadonlyRootfs(),
		mounts:      planMounts(config, container, listDevices()),
		traversable: slices.Concat(config.Path, config.Readable, config.ofImage),
	}
}

// enter gives the calling thread namespaces of its own, in which this is the root.
func (r rootfs) enter() (*namespaces, error) {
	own, err := newNamespaces()
	if err != nil {
		return nil, err
	}
	if err := r.build(); err != nil {
		own.close()
		return nil, err
	}
	return own, nil
}

func (r rootfs) build() error {
	// Slave, so that what the kubelet unmounts later is not kept busy here, and nothing goes back to the node.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts slaves of the node's: %w", err)
	}
	if err := r.mountOverlay(); err != nil {
		return err
	}
	trees, err := detach(r.mounts)
	if err != nil {
		return err
	}
	defer closeTrees(trees)
	if err := pivot(r.path("root")); err != nil {
		return fmt.Errorf("change to the container's root directory: %w", err)
	}
	return r.furnish(trees)
}

func (r rootfs) path(name string) string { return filepath.Join(r.scratch, name) }

func (r rootfs) mountOverlay() error {
	if err := r.makeLayer(); err != nil {
		return fmt.Errorf("make the container's writable layer: %w", err)
	}
	// Volatile, or the end of each container would write the whole filesystem of the layer to disk.
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,volatile", r.lower, r.path("upper"), r.path("work"))
	if err := unix.Mount("overlay", r.path("root"), "overlay", 0, options); err != nil {
		return fmt.Errorf("mount an overlay of %s with its writable layer in %s: %w "+
			"(the state directory must lie on a filesystem like ext4, xfs or tmpfs, not on another overlay)",
			r.lower, r.scratch, err)
	}
	return nil
}

// makeLayer makes the writable layer, in which /tmp and /run are empty as they are in an image.
func (r rootfs) makeLayer() error {
	for _, name := range []string{"upper/tmp", "upper/run", "work", "root"} {
		if err := os.MkdirAll(r.path(name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"upper/tmp", "upper/run"} {
		if err := unix.Setxattr(r.path(name), "trusted.overlay.opaque", []byte("y"), 0); err != nil {
			return fmt.Errorf("set an overlay attribute in %s: %w", r.scratch, err)
		}
	}
	return os.Chmod(r.path("upper/tmp"), 0o777|os.ModeSticky)
}

// pivot makes path, a mount point, the root directory, and takes the old one off.
func pivot(path string) error {
	if err := unix.Chdir(path); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}

// furnish completes the root directory that the calling thread has entered.
func (r rootfs) furnish(trees []tree) error {
	if r.hostname != "" {
		if err := unix.Sethostname([]byte(r.hostname)); err != nil {
			return fmt.Errorf("set the hostname: %w", err)
		}
	}
	if err := openAncestors(r.traversable); err != nil {
		return err
	}
	if err := makeDev(); err != nil {
		return err
	}
	for _, t := range trees {
		if err := t.attach(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.directory, 0o755); err != nil {
		return fmt.Errorf("make the working directory: %w", err)
	}
	if r.readOnly {
		return setReadOnly(unix.AT_FDCWD, "/", 0)
	}
	return nil
}

// openAncestors lets every user pass through the directories above paths, in the writable layer only.
func openAncestors(paths []string) error {
	const traversable = 0o011 // the group too: a user without a group of their own has root's
	for _, path := range paths {
		for directory := filepath.Dir(path); directory != "/"; directory = filepath.Dir(directory) {
			info, err := os.Stat(directory)
			if err != nil || info.Mode()&traversable == traversable {
				continue
			}
			if err := os.Chmod(directory, info.Mode()|traversable); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeDev makes a /dev of the container's own. Device files are bound into it as mounts.
func makeDev() error {
	for _, m := range []struct{ kind, target, options string }{
		{"tmpfs", "/dev", "mode=755"},
		{"tmpfs", "/dev/shm", "mode=1777"},
		{"devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=0620"},
	} {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.target, m.kind, unix.MS_NOSUID, m.options); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.kind, m.target, err)
		}
	}
	for name, target := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, filepath.Join("/dev", name)); err != nil {
			return err
		}
	}
	return nil
}
