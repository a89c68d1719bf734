package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestAnImageHasTheProgramsOfItsVersion(t *testing.T) {
	folder := t.TempDir()
	link(t, "/cache/1.34/localcluster", filepath.Join(folder, "lower/cache/1.34/kube-scheduler"))
	link(t, "/cache/1.34", filepath.Join(folder, "programs/v1.34.4"))
	config := Config{
		Lower: filepath.Join(folder, "lower"), Programs: filepath.Join(folder, "programs"), Path: []string{"/cache/1.37"},
	}
	for image, want := range map[string][]string{
		"registry.k8s.io/kube-scheduler:v1.34.4":  {"/cache/1.34", "/cache/1.37"},
		"localhost:5000/kube-scheduler:v1.34.4":   {"/cache/1.34", "/cache/1.37"},
		"registry.k8s.io/kube-scheduler:v1.34.99": {"/cache/1.37"},
		"kube-scheduler":                          {"/cache/1.37"},
		"kube-scheduler:..":                       {"/cache/1.37"},
	} {
		got := config.forImage(image)
		if !slices.Equal(got.Path, want) {
			t.Errorf("%s finds programs in %q, wanted %q", image, got.Path, want)
		}
		if others := len(want) > 1; others != slices.Contains(got.ofImage, "/cache/1.34/localcluster") {
			t.Errorf("%s has %q", image, got.ofImage)
		}
	}
}

func TestProgramsOfAnImageAreFoundByEveryUser(t *testing.T) {
	programs, own, ofCluster := t.TempDir(), privateFolder(t, "cache/own"), privateFolder(t, "cache/cluster")
	for folder, says := range map[string]string{own: "ours", ofCluster: "the cluster's"} {
		program := filepath.Join(folder, "program")
		must(t, os.WriteFile(program, []byte("#!/bin/sh\necho \""+says+"\"\n"), 0o755))
		link(t, program, filepath.Join(folder, "kube-scheduler"))
	}
	link(t, own, filepath.Join(programs, "0.1.0-1.37"))
	pod := startNode(t, func(c *Config) {
		c.Programs, c.Path, c.Readable = programs, []string{ofCluster}, []string{filepath.Join(ofCluster, "program")}
	}).pod("scheduler")
	nobody := withSecurity(&cri.LinuxContainerSecurityContext{RunAsUser: &cri.Int64Value{Value: 65532}})
	for image, want := range map[string]string{
		"example.org:5000/gpushare-scheduler:0.1.0-1.37": "ours",
		"example.org:5000/gpushare:0.1.0":                "the cluster's",
	} {
		pod.wants(want, "kube-scheduler", nobody, func(c *cri.ContainerConfig) { c.Image.Image = image })
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
