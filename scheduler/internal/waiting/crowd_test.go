package waiting

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Attempts of some pods, changes of a node and rounds at the same time, as in the scheduler: one attempt after the other.
func TestNothingIsKeptOfACrowdThatIsGone(t *testing.T) {
	w := newWorld()
	var running sync.WaitGroup
	for seed := range uint64(4) {
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 2000 {
				w.act(random)
			}
		})
	}
	running.Wait()
	sum := 0
	for _, group := range w.pods.groups {
		sum += len(group.pods)
		if !slices.IsSortedFunc(group.pods, compare) {
			t.Error("a group is not in its order")
		}
	}
	if sum != w.pods.Len() {
		t.Errorf("%d pods in groups, and %d wait", sum, w.pods.Len())
	}
	for place := range 50 {
		w.pods.Remove(types.UID(fmt.Sprint("pod-", place)))
	}
	if len(w.pods.groups)+len(w.pods.pods) > 0 {
		t.Errorf("%d groups and %d pods are kept", len(w.pods.groups), len(w.pods.pods))
	}
}

// act does something that the scheduler does.
func (w *world) act(random *rand.Rand) {
	place := random.IntN(50)
	one := pod(fmt.Sprint("pod-", place), fmt.Sprint(1+(place+random.IntN(2))%4), int32(place%3))
	switch random.IntN(8) {
	case 0, 1, 2:
		_, attempt := w.begin(one)
		w.pods.Refused(one.UID, w.nodes.NodeSet(attempt, []string{"gpu-1"}), w.nodes)
	case 3:
		w.begin(one) // it fails by an error
	case 4:
		w.pods.Remove(one.UID)
	case 5:
		w.report(int64(random.IntN(17)))
		w.pods.Changed("gpu-1", w.nodes)
		w.pods.Next("gpu-1", w.nodes, w)
	case 6:
		w.occupied(int32(random.IntN(3)))
		w.pods.Open()
		w.pods.Preemptors(w.nodes, w)
	case 7:
		w.pods.Anew("gpu-1")
	}
}
