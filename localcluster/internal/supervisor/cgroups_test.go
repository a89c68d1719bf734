package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpushare.io/localcluster/internal/config"
)

func TestEveryNodeWithRealContainersHasACgroupOfItsOwn(t *testing.T) {
	real := config.Containerd{Programs: []string{"/containerd"}}
	cgroup := func(directory, name string, containerd config.Containerd) string {
		cluster := config.Cluster{Directory: config.Directory(directory), Containerd: containerd}
		return newMachines(cluster, nil, nil).cgroup(&machine{Node: config.Node{Name: name}})
	}
	if got := cgroup("/a", "gpu-1", config.Containerd{}); got != "" {
		t.Errorf("a node without real containers has the cgroup %s", got)
	}
	seen := map[string]bool{}
	for _, directory := range []string{"/a", "/b"} {
		for _, name := range []string{"gpu-1", "gpu-2"} {
			got := cgroup(directory, name, real)
			if seen[got] || !strings.HasSuffix(got, "/"+name) || !strings.HasPrefix(got, "/localcluster-") {
				t.Errorf("node %s of the cluster in %s has the cgroup %s", name, directory, got)
			}
			seen[got] = true
		}
	}
}

func TestAllControllersAreDelegatedDownToTheNode(t *testing.T) {
	hierarchy := t.TempDir()
	if err := os.MkdirAll(filepath.Join(hierarchy, "cluster/node"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(hierarchy, "cgroup.controllers"), "cpu memory pids\n")
	if err := delegate(hierarchy, "/cluster/node"); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"", "cluster", "cluster/node"} {
		got, err := os.ReadFile(filepath.Join(hierarchy, folder, "cgroup.subtree_control"))
		if err != nil || string(got) != " +cpu +memory +pids" {
			t.Errorf("%q passes on %q, error %v", folder, got, err)
		}
	}
}

func TestHierarchiesOfTheFirstVersionAreNotDelegated(t *testing.T) {
	hierarchy := t.TempDir()
	if err := delegate(hierarchy, "/cluster/node"); err != nil {
		t.Error(err)
	}
}

func TestAWholeTreeOfCgroupsIsRemoved(t *testing.T) {
	root := filepath.Join(t.TempDir(), "cluster")
	if err := os.MkdirAll(filepath.Join(root, "node/pods/pod/container"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing, and that is no error
		if err := removeTree(root); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", root, err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
