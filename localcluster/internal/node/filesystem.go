package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gpushare.io/localcluster/internal/config"
)

const (
	runFolder     = "/run/localcluster"
	imageFolder   = runFolder + "/image"      // the host's root: what every image holds
	recordFolder  = runFolder + "/containers" // one record for each container, seen by the host
	programFolder = runFolder + "/programs"   // links to programs as the host has them
	stateFolder   = runFolder + "/state"      // the runtime's own
	criSocket     = runFolder + "/cri.sock"
)

// devices are the host's device files that a node finds in its /dev, which is otherwise its own.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty", "kmsg", "nvidia*"}

type mount struct {
	source, target, kind string
	flags                uintptr
	options              string
}

// enterFilesystem makes a root of the node's own and moves into it. It is the host's root with a layer in memory
// above it, so nothing the node writes reaches the host, but for the folders that shall survive a reboot.
func enterFilesystem(settings Settings) error {
	layers := settings.Folder.Join(config.Root)
	if err := perform(mount{"tmpfs", layers, "tmpfs", 0, "mode=0755"}); err != nil {
		return err
	}
	for _, name := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(layers, name), 0o755); err != nil {
			return err
		}
	}
	root := filepath.Join(layers, "root")
	overlay := fmt.Sprintf("lowerdir=/,upperdir=%s/upper,workdir=%s/work", layers, layers)
	if err := perform(mount{"overlay", root, "overlay", 0, overlay}); err != nil {
		return fmt.Errorf("%w; the kernel must support overlay file systems", err)
	}
	for _, step := range mounts(settings, root) {
		if err := perform(step); err != nil {
			return err
		}
	}
	if err := bindImage(settings.Image, root); err != nil {
		return err
	}
	if err := linkDevices(root); err != nil {
		return err
	}
	if err := writeHosts(root, settings); err != nil {
		return err
	}
	return changeRoot(root)
}

func mounts(settings Settings, root string) []mount {
	in := func(path string) string { return filepath.Join(root, path) }
	bind := func(source, path string) mount { return mount{source, in(path), "", unix.MS_BIND, ""} }
	// With the disks that are mounted below.
	tree := func(source, path string) mount { return mount{source, in(path), "", unix.MS_BIND | unix.MS_REC, ""} }
	own := settings.Folder.Join
	steps := []mount{
		{"proc", in("/proc"), "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"/sys", in("/sys"), "", unix.MS_BIND | unix.MS_REC, ""},
		{"tmpfs", in("/run"), "tmpfs", 0, "mode=0755"},
		{"tmpfs", in("/tmp"), "tmpfs", 0, "mode=1777"},
		{"/", in(imageFolder), "", unix.MS_BIND | unix.MS_REC, ""},
		bind(own(config.Containers), recordFolder),
		bind(own(config.Programs), programFolder),
		tree(own(config.Kubelet), "/var/lib/kubelet"),
		tree(own(config.GPUShare), "/var/lib/gpushare"),
		tree(own(config.Kubernetes), "/etc/kubernetes"),
		tree(own(config.Log), "/var/log"),
		{"tmpfs", in("/dev"), "tmpfs", 0, "mode=0755"},
		{"tmpfs", in("/dev/shm"), "tmpfs", 0, "mode=1777"},
		{"devpts", in("/dev/pts"), "devpts", 0, "newinstance,ptmxmode=0666,mode=0620"},
	}
	if settings.Containerd.IsUsed() {
		// Layers of images cannot lie on the layers of the node's own root.
		steps = append(steps, mount{"tmpfs", in(containerdFolder), "tmpfs", 0, "mode=0711"})
	}
	for _, pattern := range devices {
		found, _ := filepath.Glob("/dev/" + pattern)
		for _, device := range found {
			steps = append(steps, bind(device, device))
		}
	}
	return steps
}

// perform mounts, and makes the mount point if it is not there: a folder, or a file for a file.
func perform(m mount) error {
	if err := makeMountPoint(m); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.options); err != nil {
		return fmt.Errorf("mount %s %s on %s: %w", m.kind, m.source, m.target, err)
	}
	return nil
}

func makeMountPoint(m mount) error {
	source, err := os.Stat(m.source)
	if m.flags&unix.MS_BIND == 0 || err != nil || source.IsDir() {
		return os.MkdirAll(m.target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(m.target), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(m.target, os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// bindImage makes what containers need visible where the layer above does not show it: in the host's /tmp, or on
// another file system than its root.
func bindImage(image config.Image, root string) error {
	paths := slices.Concat(image.Path, image.Readable)
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		target := filepath.Join(root, path)
		if err := perform(mount{path, target, "", unix.MS_BIND | unix.MS_REC, ""}); err != nil {
			return err
		}
		if err := perform(mount{path, target, "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""}); err != nil {
			return err
		}
	}
	return nil
}

func linkDevices(root string) error {
	links := map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, "dev", name)); err != nil {
			return err
		}
	}
	return nil
}

func writeHosts(root string, settings Settings) error {
	lines := []string{"127.0.0.1 localhost", settings.Address + " " + settings.Name, ""}
	return os.WriteFile(filepath.Join(root, "etc/hosts"), []byte(strings.Join(lines, "\n")), 0o644)
}

func changeRoot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	// With both names the same, the old root lies above the new one, and goes with the next call.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	return os.Chdir("/")
}
