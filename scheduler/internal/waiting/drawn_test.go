package waiting

import (
	"fmt"
	"math/rand/v2"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drawn are pods that come, are nominated for the node, and are gone, while others take units of it and leave them.
type drawn struct {
	*world
	random *rand.Rand
	all    map[string]*v1.Pod
	free   int64
}

func (d *drawn) act() {
	name := fmt.Sprint("pod-", d.random.IntN(6))
	switch d.random.IntN(6) {
	case 0:
		units := []string{"4", "8", "16"}[d.random.IntN(3)]
		d.all[name] = pod(name, units, d.random.Int32N(2))
		d.try(d.all[name])
	case 1:
		d.nominated[name] = "gpu-1"
	case 2:
		delete(d.nominated, name)
		d.pods.Remove(types.UID(name))
	case 3:
		d.free /= 2 // the pods that wait are not told
		d.report(d.free)
	case 4:
		d.free = 4 * d.random.Int64N(5)
		d.change(d.free)
	case 5:
		d.round()
	}
}

// round has those tried who are woken. Another plugin refuses whom the node fits.
func (d *drawn) round() {
	for _, name := range d.next() {
		d.try(d.all[name])
	}
}

func TestEverybodyWhomTheNodeFitsIsTriedWhateverHappenedBefore(t *testing.T) {
	for seed := range uint64(2000) {
		d := &drawn{newWorld(), rand.New(rand.NewPCG(seed, 1)), map[string]*v1.Pod{}, 16}
		for range 30 {
			d.act()
		}
		d.report(16)
		d.pods.Changed("gpu-1", d.nodes)
		for range 2 * len(d.all) {
			d.round()
		}
		for uid, one := range d.pods.pods {
			if one.refusedBy.Has(d.nodes.Place("gpu-1")) {
				t.Errorf("seed %d: %s still waits for the node", seed, uid)
			}
		}
	}
}
