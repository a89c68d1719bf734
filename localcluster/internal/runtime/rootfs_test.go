package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// wants runs a script in a new container and compares what it prints.
func (p *pod) wants(want, text string, adjust ...func(*cri.ContainerConfig)) {
	p.Helper()
	ended := p.run(script("{ "+text+"\n} 2>&1", adjust...))
	if got := ended.output(); strings.TrimSpace(got) != want {
		p.Errorf("%s\ngot  %q\nwant %q", text, got, want)
	}
}

func TestRootFilesystemIsTheMachinesBelowALayerOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.MkdirAll("/var/lib/localcluster-test", 0o755))
	t.Cleanup(func() { _ = os.RemoveAll("/var/lib/localcluster-test") })
	must(t, os.WriteFile("/var/lib/localcluster-test/file", []byte("host"), 0o644))

	pod := startNode(t).pod("web")
	pod.wants("host changed", "cd /var/lib/localcluster-test; cat file; echo -n changed > file; echo \" $(cat file)\"")
	pod.wants("host", "cat /var/lib/localcluster-test/file; echo")
	pod.wants("", "ls -A /tmp /run | grep -v :$")
	pod.wants("absent", "[ -e "+path+" ] || echo absent; touch /tmp/x")
}

func TestMountsReplaceWhatTheRootHolds(t *testing.T) {
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "file"), []byte("content\n"), 0o644))
	file := filepath.Join(folder, "file")
	pod := startNode(t).pod("web")
	cases := map[string]struct{ source, target, script, want string }{
		"a folder":                 {folder, "/data/deep", "cat /data/deep/file", "content"},
		"a file":                   {file, "/etc/hosts", "cat /etc/hosts", "content"},
		"a file that is not there": {file, "/etc/new/config", "cat /etc/new/config", "content"},
		"below a link out of the root": {folder, "/var/run/secrets/kubernetes.io/serviceaccount",
			"cat /run/secrets/kubernetes.io/serviceaccount/file", "content"},
		"over the temporary folder": {folder, "/tmp", "cat /tmp/file", "content"},
		"in the folder of devices":  {file, "/dev/termination-log", "cat /dev/termination-log", "content"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			pod.wants(test.want, test.script, withMount(test.source, test.target, false))
		})
	}
	if _, err := os.Stat("/dev/termination-log"); err == nil {
		t.Error("a mount point was made in the machine's own /dev")
	}
}

func TestOuterMountsComeFirst(t *testing.T) {
	outer, inner := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(inner, "file"), nil, 0o644))
	startNode(t).pod("web").wants("file", "ls /a/b", withMount(inner, "/a/b", false), withMount(outer, "/a", false))
}

func TestMountsAreWritableUnlessReadOnly(t *testing.T) {
	folder := t.TempDir()
	pod := startNode(t).pod("web")
	pod.wants("no", "touch /data/x 2>/dev/null && echo yes || echo no", withMount(folder, "/data", true))
	pod.wants("yes", "touch /data/x 2>/dev/null && echo yes || echo no", withMount(folder, "/data", false))
	if _, err := os.Stat(filepath.Join(folder, "x")); err != nil {
		t.Error(err)
	}
}

func TestMountMadeOnTheNodeLaterReachesTheContainer(t *testing.T) {
	folder := t.TempDir()
	must(t, os.Mkdir(filepath.Join(folder, "volume"), 0o755))
	must(t, unix.Mount(folder, folder, "", unix.MS_BIND, ""))
	must(t, unix.Mount("", folder, "", unix.MS_SHARED, ""))
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	running := startNode(t).pod("web").start(script("sleep infinity", withMount(folder, "/data", false)))

	must(t, unix.Mount("tmpfs", filepath.Join(folder, "volume"), "tmpfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(filepath.Join(folder, "volume"), unix.MNT_DETACH) })
	must(t, os.WriteFile(filepath.Join(folder, "volume", "file"), nil, 0o644))
	equal(t, "listing", string(running.exec("ls", "/data/volume").GetStdout()), "file\n")
}

func TestReadOnlyRootLeavesTheMountsWritable(t *testing.T) {
	readOnly := withSecurity(&cri.LinuxContainerSecurityContext{ReadonlyRootfs: true})
	startNode(t).pod("web").wants("data shm",
		"for d in /etc /tmp /run /data /dev/shm; do touch $d/x 2>/dev/null && echo -n \"${d##*/} \"; done; echo",
		readOnly, withMount(t.TempDir(), "/data", false))
}

func TestDevices(t *testing.T) {
	node := startNode(t)
	must(t, unix.Mknod("/dev/accelerator0", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))) // another /dev/zero
	t.Cleanup(func() { _ = os.Remove("/dev/accelerator0") })
	pod := node.pod("web")
	const read = "head -c1 /dev/accelerator0 2>/dev/null | wc -c"
	pod.wants("0", read)
	pod.wants("1", read, withDevice("/dev/accelerator0"))
	pod.wants("1", read, withSecurity(&cri.LinuxContainerSecurityContext{Privileged: true}))
	pod.wants("0", read, withDevice("/dev/no-such-device"))
	pod.wants("full null ptmx random stderr stdin stdout tty urandom zero",
		"cd /dev; echo $(ls | grep -v -x -e fd -e pts -e shm)")
}

func withDevice(path string) func(*cri.ContainerConfig) {
	return func(c *cri.ContainerConfig) {
		c.Devices = []*cri.Device{{HostPath: path, ContainerPath: path, Permissions: "rw"}}
	}
}

// privateFolder makes a folder that only root can reach, as a home directory, and below it the given one.
func privateFolder(t *testing.T, below string) string {
	t.Helper()
	private, err := os.MkdirTemp("/var/lib", "localcluster-test")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(private) })
	path := filepath.Join(private, below)
	must(t, os.MkdirAll(path, 0o755))
	return path
}

func TestReadablePathsCanBeReachedByEveryUser(t *testing.T) {
	path := privateFolder(t, "venv/bin")
	must(t, os.WriteFile(filepath.Join(path, "tool"), []byte("#!/bin/sh\necho tool\n"), 0o755))
	node := startNode(t, func(c *Config) {
		c.Path = []string{path}
		c.Readable = []string{filepath.Dir(path), "/no/such/path"}
	})
	pod := node.pod("web")
	user, group := &cri.Int64Value{Value: 1000}, &cri.Int64Value{Value: 1000}
	pod.wants("tool", "tool", withSecurity(&cri.LinuxContainerSecurityContext{RunAsUser: user}))
	pod.wants("tool", "tool", withSecurity(&cri.LinuxContainerSecurityContext{RunAsUser: user, RunAsGroup: group}))
	pod.wants("no", "touch "+path+"/x 2>/dev/null && echo yes || echo no")

	info, err := os.Stat(filepath.Dir(filepath.Dir(path)))
	must(t, err)
	equal(t, "mode on the host", info.Mode().Perm(), 0o700)
}

func TestReadablePathOnAnotherFilesystemIsThere(t *testing.T) {
	path := privateFolder(t, "disk")
	must(t, unix.Mount("tmpfs", path, "tmpfs", 0, "mode=755"))
	t.Cleanup(func() { must(t, unix.Unmount(path, unix.MNT_DETACH)) })
	must(t, os.WriteFile(filepath.Join(path, "file"), nil, 0o644))
	startNode(t, func(c *Config) { c.Readable = []string{path} }).pod("web").wants("file", "ls "+path)
}

func TestStateDirectoryInMemory(t *testing.T) {
	state := t.TempDir()
	must(t, unix.Mount("tmpfs", state, "tmpfs", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(state, unix.MNT_DETACH)) })
	startNode(t, func(c *Config) { c.StateDir = state }).pod("web").wants("x", "cd /root; ls -A /tmp; touch x; ls x")
}

func TestStateDirectoryOnAnOverlayIsRefusedClearly(t *testing.T) {
	layers := t.TempDir()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		must(t, os.Mkdir(filepath.Join(layers, name), 0o755))
	}
	merged := filepath.Join(layers, "merged")
	must(t, unix.Mount("overlay", merged, "overlay", 0,
		"lowerdir="+layers+"/lower,upperdir="+layers+"/upper,workdir="+layers+"/work"))
	t.Cleanup(func() { must(t, unix.Unmount(merged, unix.MNT_DETACH)) })
	failed := startNode(t, func(c *Config) { c.StateDir = merged }).pod("web").create(script("true"))
	if err := failed.start(); err == nil || !strings.Contains(err.Error(), "not on another overlay") {
		t.Errorf("start: got %v, want an error that says where the state directory may lie", err)
	}
}

func TestHostname(t *testing.T) {
	pod := startNode(t).pod("web-0")
	pod.wants("web-0 web-0", "echo $(hostname) $HOSTNAME")
}

func TestWorkingDirectoryIsMade(t *testing.T) {
	startNode(t).pod("web").wants("/app/deep", "pwd", func(c *cri.ContainerConfig) { c.WorkingDir = "/app/deep" })
}
