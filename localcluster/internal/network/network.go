// Package network connects the cluster's network namespaces: one bridge, one address for each node.
//
// The control plane's own namespace carries the address of Service `kubernetes`, so the Service works
// without kube-proxy. Nothing of it is visible on the host, so any number of clusters use the same addresses.
package network

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
)

const (
	// Gateway is the control plane's address on the nodes' network.
	Gateway = "172.30.0.1"
	// ServiceAddress is the ClusterIP of Service `kubernetes`: the first of ServiceRange.
	ServiceAddress = "10.96.0.1"
	// ServiceRange is where the apiserver takes ClusterIPs from.
	ServiceRange = "10.96.0.0/16"

	bridge        = "cluster"
	nodeInterface = "eth0"
	prefix        = "/16"
	firstNode     = 10
)

// NodeAddress is the address of the index-th node, counted from 0.
func NodeAddress(index int) string {
	host := firstNode + index
	return fmt.Sprintf("172.30.%d.%d", host/256, host%256)
}

// PodRange is where the pods of the index-th node have their addresses, if they have networks of their own.
func PodRange(index int) string { return fmt.Sprintf("10.244.%d.0/24", index) }

// SetUpControlPlane prepares the calling process's new network namespace for the control plane.
func SetUpControlPlane() error {
	if err := raise("lo"); err != nil {
		return err
	}
	ours := attributes(bridge)
	ours.HardwareAddr = hardwareAddress(Gateway)
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: ours}); err != nil {
		return fmt.Errorf("create bridge (kernel module `bridge`): %w", err)
	}
	if err := addAddress(bridge, Gateway+prefix); err != nil {
		return err
	}
	if err := addAddress(bridge, ServiceAddress+"/32"); err != nil {
		return err
	}
	if err := forward(); err != nil {
		return err
	}
	return raise(bridge)
}

// forward lets the calling process's network namespace pass on packets, from one node's pods to another's.
func forward() error {
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// Connect gives the network namespace of process pid an interface on the bridge; the process sets it up itself.
func Connect(pid, index int) error {
	parent, err := netlink.LinkByName(bridge)
	if err != nil {
		return err
	}
	ours := attributes(fmt.Sprintf("node%d", index))
	ours.MasterIndex = parent.Attrs().Index
	pair := &netlink.Veth{
		LinkAttrs:        ours,
		PeerName:         nodeInterface,
		PeerNamespace:    netlink.NsPid(pid),
		PeerHardwareAddr: hardwareAddress(NodeAddress(index)),
	}
	// The kernel removes the old interface a moment after the old namespace, and not before.
	if old, err := netlink.LinkByName(ours.Name); err == nil {
		_ = netlink.LinkDel(old)
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("create a pair of network interfaces (kernel module `veth`): %w", err)
	}
	return errors.Join(raise(ours.Name), routeToPods(index))
}

// routeToPods lets the control plane answer pods that have networks of their own.
func routeToPods(index int) error {
	_, pods, err := net.ParseCIDR(PodRange(index))
	if err != nil {
		return err
	}
	return netlink.RouteReplace(&netlink.Route{Dst: pods, Gw: net.ParseIP(NodeAddress(index))})
}

// SetUpNode configures the interface that Connect made, from inside the node.
func SetUpNode(address string) error {
	if err := raise("lo"); err != nil {
		return err
	}
	if err := addAddress(nodeInterface, address+prefix); err != nil {
		return err
	}
	if err := raise(nodeInterface); err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(Gateway)})
}

// hardwareAddress belongs to an IP address for good. Left to the kernel, a bridge changes its own whenever a node
// comes or goes, and the others' packets miss it until their ARP caches expire, half a minute later.
func hardwareAddress(ip string) net.HardwareAddr {
	const locallyAdministered = 0x02
	return append(net.HardwareAddr{locallyAdministered, 0}, net.ParseIP(ip).To4()...)
}

func attributes(name string) netlink.LinkAttrs {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	return attributes
}

func raise(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("network interface %s: %w", name, err)
	}
	return netlink.LinkSetUp(link)
}

func addAddress(name, cidr string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("network interface %s: %w", name, err)
	}
	address, err := netlink.ParseAddr(cidr)
	if err != nil {
		return err
	}
	return netlink.AddrAdd(link, address)
}
