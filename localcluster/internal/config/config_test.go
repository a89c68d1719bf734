package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadNamesWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct{ content, wanted string }{
		"not JSON":           {`{`, "config.json"},
		"relative directory": {`{"directory": "here"}`, "absolute path"},
		"long directory":     {`{"directory": "/` + strings.Repeat("x", 100) + `"}`, "too long"},
		"node without name":  {`{"directory": "/d", "nodes": [{}]}`, `node name ""`},
		"node name no host":  {`{"directory": "/d", "nodes": [{"name": "a..b"}]}`, `node name "a..b"`},
		"same name twice":    {`{"directory": "/d", "nodes": [{"name": "a"}, {"name": "a"}]}`, "two nodes are called a"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(write(t, test.content)); err == nil || !strings.Contains(err.Error(), test.wanted) {
				t.Errorf("error is %v, wanted %q in it", err, test.wanted)
			}
		})
	}
}

func TestReadTakesNodeNamesWithDots(t *testing.T) {
	read, err := Read(write(t, `{"directory": "/d", "nodes": [{"name": "gpu-1.example.org"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if name := read.Nodes[0].Name; name != "gpu-1.example.org" {
		t.Errorf("the node is called %q", name)
	}
}

func TestReadFillsInAFreePort(t *testing.T) {
	cluster, err := Read(write(t, `{"directory": "/d", "nodes": [{"name": "gpu-1", "labels": {"a": "b"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Listen != "127.0.0.1:0" || cluster.Nodes[0].Labels["a"] != "b" {
		t.Errorf("read %+v", cluster)
	}
}

func TestAPathThatSurvivesRebootsHasItsPlaceInTheNodesFolder(t *testing.T) {
	node := Directory("/cluster").Node("gpu-1")
	for path, wanted := range map[string]string{
		"/etc/kubernetes":              "/cluster/nodes/gpu-1/etc-kubernetes",
		"/var/log/gpushare":            "/cluster/nodes/gpu-1/log/gpushare",
		"/var/lib/gpushare/isolation":  "/cluster/nodes/gpu-1/lib-gpushare/isolation",
		"/var/lib/kubelet/../../shady": "",
		"/var/lib/kubelets":            "",
		"/":                            "",
	} {
		if place, err := node.Place(path); place != wanted || (err != nil) != (wanted == "") {
			t.Errorf("%s lies in %q, error %v", path, place, err)
		}
	}
	if err := (Node{Name: "a", Disks: map[string]string{"/srv": "1m"}}).Check(); err == nil {
		t.Error("a disk where nothing survives was accepted")
	}
	if err := (Node{Name: "a", Disks: map[string]string{"/var/lib/kubelet/device-plugins": "1m"}}).Check(); err == nil {
		t.Error("a disk that the kubelet would not see was accepted")
	}
}

func TestForgetContainersLeavesTheOtherFolders(t *testing.T) {
	node := Directory(t.TempDir()).Node("gpu-1")
	if err := node.Create(); err != nil {
		t.Fatal(err)
	}
	record, kept := node.Join(Containers, "id.json"), node.Join(Kubelet, "kept")
	for _, path := range []string{record, kept} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.ForgetContainers(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("record is still there: %v", err)
	}
	for _, path := range []string{kept, filepath.Dir(record)} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
