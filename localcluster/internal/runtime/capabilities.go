package runtime

import (
	"slices"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// capabilityNames lists Linux's capabilities by number (capabilities(7), linux/capability.h).
var capabilityNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
	LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO
	SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE
	AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON
	BPF CHECKPOINT_RESTORE`)

// defaultCapabilities are those that Docker and containerd give to a container that asks for nothing.
var defaultCapabilities = strings.Fields(`CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP
	SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE`)

// deniedCapabilities returns the numbers of the capabilities that a container must not have.
func deniedCapabilities(security *cri.LinuxContainerSecurityContext) []uintptr {
	if security.GetPrivileged() {
		return nil
	}
	add := security.GetCapabilities().GetAddCapabilities()
	drop := security.GetCapabilities().GetDropCapabilities()
	var denied []uintptr
	for number, name := range capabilityNames {
		if !granted(name, add, drop) {
			denied = append(denied, uintptr(number))
		}
	}
	return denied
}

// granted says whether a container has a capability; a capability by name goes before "ALL".
func granted(name string, add, drop []string) bool {
	switch {
	case names(drop, name):
		return false
	case names(add, name):
		return true
	case names(drop, "ALL"):
		return false
	}
	return names(add, "ALL") || slices.Contains(defaultCapabilities, name)
}

func names(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return strings.TrimPrefix(strings.ToUpper(entry), "CAP_") == name
	})
}
