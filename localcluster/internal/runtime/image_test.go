package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
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

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
