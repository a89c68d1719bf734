package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
)

func TestContainerdFindsItsProgramsBeforeThoseOfTheHost(t *testing.T) {
	t.Setenv("PATH", "/bin")
	settings := Settings{Containerd: config.Containerd{Programs: []string{"/cache/containerd", "/cache/runc"}}}
	wanted := imageFolder + "/cache/containerd:" + imageFolder + "/cache/runc:/bin"
	if got := programPath(settings); got != "PATH="+wanted {
		t.Errorf("containerd finds programs by %s, wanted %s", got, wanted)
	}
}

func TestTheNetworkOfPodsIsThatOfTheirNode(t *testing.T) {
	var chain struct {
		Plugins []struct {
			IPMasq bool
			IPAM   struct{ Ranges [][]struct{ Subnet string } }
		}
	}
	if err := json.Unmarshal([]byte(fmt.Sprintf(networkJSON, network.PodRange(3))), &chain); err != nil {
		t.Fatal(err)
	}
	if got := chain.Plugins[0].IPAM.Ranges[0][0].Subnet; got != network.PodRange(3) {
		t.Errorf("pods get addresses of %s", got)
	}
	if chain.Plugins[0].IPMasq {
		t.Error("addresses of pods would be translated, for which a node has no packet filter")
	}
}

func TestContainerdListensWhereTheKubeletLooks(t *testing.T) {
	if !strings.Contains(fmt.Sprintf(containerdTOML, "/cni"), `address = "`+criSocket+`"`) {
		t.Error("containerd has another socket than the kubelet's endpoint")
	}
}
