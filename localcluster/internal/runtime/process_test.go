package runtime

import (
	"slices"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestEnvironment(t *testing.T) {
	config := Config{Path: []string{"/opt/venv/bin"}}
	cases := map[string]struct {
		requested []*cri.KeyValue
		uid       uint32
		want      []string
	}{
		"has defaults":    {nil, 0, []string{"HOME=/root", "HOSTNAME=web", "PATH=/opt/venv/bin:" + systemPath}},
		"of another user": {nil, 1000, []string{"HOME=/", "HOSTNAME=web", "PATH=/opt/venv/bin:" + systemPath}},
		"is the pod's where it says something": {
			[]*cri.KeyValue{{Key: "PATH", Value: []byte("/bin")}, {Key: "A", Value: []byte("b=c d")}}, 0,
			[]string{"A=b=c d", "HOME=/root", "HOSTNAME=web", "PATH=/bin"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if got := planEnv(config, test.requested, test.uid, "web"); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	cases := map[string]struct {
		image         string
		command, args []string
		want          []string
	}{
		"is command and arguments":   {"app", []string{"a"}, []string{"b", "c"}, []string{"a", "b", "c"}},
		"is arguments alone":         {"app", nil, []string{"a", "b"}, []string{"a", "b"}},
		"is a pause without command": {"app", nil, nil, pauseCommand},
		"is a pause by the image":    {"registry.k8s.io/pause:3.10", []string{"/pause"}, nil, pauseCommand},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got := commandLine(&cri.ContainerConfig{
				Image: &cri.ImageSpec{Image: test.image}, Command: test.command, Args: test.args,
			})
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestGrantedCapability(t *testing.T) {
	cases := map[string]struct {
		name      string
		add, drop []string
		want      bool
	}{
		"by default":                  {"CHOWN", nil, nil, true},
		"not by default":              {"SYS_ADMIN", nil, nil, false},
		"added":                       {"SYS_ADMIN", []string{"SYS_ADMIN"}, nil, true},
		"added by its long name":      {"SYS_ADMIN", []string{"CAP_SYS_ADMIN"}, nil, true},
		"added with all":              {"SYS_ADMIN", []string{"ALL"}, nil, true},
		"dropped":                     {"CHOWN", nil, []string{"chown"}, false},
		"dropped with all":            {"CHOWN", nil, []string{"ALL"}, false},
		"added where all are dropped": {"CHOWN", []string{"CHOWN"}, []string{"ALL"}, true},
		"dropped where all are added": {"CHOWN", []string{"ALL"}, []string{"CHOWN"}, false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			equal(t, test.name, granted(test.name, test.add, test.drop), test.want)
		})
	}
}

func TestIdentity(t *testing.T) {
	pod := startNode(t).pod("web")
	user, group := &cri.Int64Value{Value: 1000}, &cri.Int64Value{Value: 2000}
	const identity = "echo $(id -u) $(id -g) $(id -G)"
	cases := map[string]struct {
		security *cri.LinuxContainerSecurityContext
		want     string
	}{
		"is root by default":    {&cri.LinuxContainerSecurityContext{}, "0 0 0"},
		"has a user":            {&cri.LinuxContainerSecurityContext{RunAsUser: user}, "1000 0 0"},
		"has a user and group":  {&cri.LinuxContainerSecurityContext{RunAsUser: user, RunAsGroup: group}, "1000 2000 2000"},
		"has additional groups": {&cri.LinuxContainerSecurityContext{RunAsUser: user, SupplementalGroups: []int64{7, 8}}, "1000 0 0 7 8"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { pod.wants(test.want, identity, withSecurity(test.security)) })
	}
}

func TestPrivileges(t *testing.T) {
	pod := startNode(t).pod("web")
	all := &cri.Capability{DropCapabilities: []string{"ALL"}}
	cases := map[string]struct {
		security *cri.LinuxContainerSecurityContext
		want     string // effective capabilities and "no new privileges"
	}{
		"of root":                 {&cri.LinuxContainerSecurityContext{}, "00000000a80425fb 0"},
		"of root without any":     {&cri.LinuxContainerSecurityContext{Capabilities: all}, "0000000000000000 0"},
		"of another user":         {&cri.LinuxContainerSecurityContext{RunAsUser: &cri.Int64Value{Value: 1}}, "0000000000000000 0"},
		"that cannot be extended": {&cri.LinuxContainerSecurityContext{NoNewPrivs: true}, "00000000a80425fb 1"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			pod.wants(test.want, "echo $(grep -e CapEff -e NoNewPrivs /proc/self/status | cut -f2)", withSecurity(test.security))
		})
	}
}

func TestOutputCanBeReopenedByItsUser(t *testing.T) {
	user := withSecurity(&cri.LinuxContainerSecurityContext{RunAsUser: &cri.Int64Value{Value: 1000}})
	startNode(t).pod("web").wants("hello", "echo hello > /dev/stdout", user)
}

func TestProgramIsFoundRelativeToTheWorkingDirectory(t *testing.T) {
	startNode(t).pod("web").wants("hello", "", func(c *cri.ContainerConfig) {
		c.WorkingDir, c.Command, c.Args = "/bin", []string{"./echo", "hello"}, nil
	})
}
