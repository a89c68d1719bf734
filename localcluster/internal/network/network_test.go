package network

import (
	"net"
	"testing"
)

func TestNodeAddressesFollowEachOther(t *testing.T) {
	for index, wanted := range map[int]string{0: "172.30.0.10", 1: "172.30.0.11", 245: "172.30.0.255", 246: "172.30.1.0", 500: "172.30.1.254"} {
		if got := NodeAddress(index); got != wanted {
			t.Errorf("node %d has %s, wanted %s", index, got, wanted)
		}
	}
}

func TestHardwareAddressesAreStableUniqueAndUnicast(t *testing.T) {
	seen := map[string]int{}
	for index := range 1000 {
		address := hardwareAddress(NodeAddress(index))
		if other, taken := seen[address.String()]; taken {
			t.Fatalf("nodes %d and %d share %s", other, index, address)
		}
		seen[address.String()] = index
		if len(address) != 6 || address[0]&0x01 != 0 || address[0]&0x02 == 0 {
			t.Fatalf("%s is not a locally administered unicast address", address)
		}
		if again := hardwareAddress(NodeAddress(index)); again.String() != address.String() {
			t.Fatalf("node %d changed from %s to %s", index, address, again)
		}
	}
}

func TestTheServiceAddressIsTheFirstOfItsRange(t *testing.T) {
	_, services, err := net.ParseCIDR(ServiceRange)
	if err != nil {
		t.Fatal(err)
	}
	first := services.IP.To4()
	first[3]++
	if !first.Equal(net.ParseIP(ServiceAddress)) {
		t.Errorf("the apiserver gives Service kubernetes %s, not %s", first, ServiceAddress)
	}
}

func TestPodsOfEveryNodeHaveARangeOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for index := range 256 {
		_, pods, err := net.ParseCIDR(PodRange(index))
		if err != nil {
			t.Fatal(err)
		}
		if seen[pods.String()] {
			t.Errorf("node %d shares %s", index, pods)
		}
		seen[pods.String()] = true
	}
}
