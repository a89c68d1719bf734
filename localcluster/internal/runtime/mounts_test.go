package runtime

import (
	"slices"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// targets lists where mounts go, a "!" marking the read-only ones.
func targets(mounts []mount) (list []string) {
	for _, m := range mounts {
		mark := ""
		if m.readOnly {
			mark = "!"
		}
		list = append(list, mark+m.target)
	}
	return list
}

func TestPlanOfMounts(t *testing.T) {
	basic := []string{"/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"}
	cases := map[string]struct {
		config    Config
		container *cri.ContainerConfig
		want      []string // besides the basic ones
	}{
		"has what every container has": {Config{}, script(""), append([]string{"/proc", "!/sys"}, basic...)},
		"has the machine's devices if privileged": {
			Config{}, script("", withSecurity(&cri.LinuxContainerSecurityContext{Privileged: true})),
			[]string{"/proc", "/sys", "/dev/kmsg"},
		},
		"protects the machine's programs": {
			Config{Path: []string{"/opt/venv/bin"}, Readable: []string{"/opt/venv"}}, script(""),
			append([]string{"!/opt/venv", "!/opt/venv/bin", "/proc", "!/sys"}, basic...),
		},
		"has the pod's mounts and devices": {
			Config{}, script("", withMount("/a", "/data", true), withMount("/b", "/data/deep/", false), withDevice("/dev/gpu0")),
			append([]string{"!/data", "/data/deep/", "/dev/gpu0", "/proc", "!/sys"}, basic...),
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := targets(planMounts(test.config, test.container, []string{"/dev/kmsg"}))
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestPlanOfMountsPutsOuterOnesFirst(t *testing.T) {
	plan := planMounts(Config{Readable: []string{"/a/b/c"}},
		script("", withMount("/x", "/a/b", false), withMount("/y", "/", false), withMount("/z", "/a/", false)), nil)
	var got []string
	for _, m := range plan {
		if slices.Contains([]string{"/a/b/c", "/a/b", "/", "/a/"}, m.target) {
			got = append(got, m.target)
		}
	}
	if want := []string{"/", "/a/", "/a/b", "/a/b/c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDetachRefusesWhatIsNotThere(t *testing.T) {
	if _, err := detach([]mount{{source: "/proc", target: "/proc"}, {source: "/absent", target: "/a"}}); err == nil {
		t.Error("no error for a missing source")
	}
	trees, err := detach([]mount{{source: "/absent", target: "/a", optional: true}})
	must(t, err)
	equal(t, "trees", len(trees), 0)
}
