package plugin

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/sharenode"
)

// books are what each pod that is there has of each card, by the Bindings.
type books struct {
	// isThere says whether the API server has a pod.
	isThere func(name string) bool
	mutex   sync.Mutex
	pods    map[string]map[string]int64
	worst   int64
}

// books returns those of a server, without any Binding.
func (s *server) books() *books {
	return &books{
		isThere: func(name string) bool { return s.pod(name) != nil }, pods: map[string]map[string]int64{},
	}
}

// bind counts a Binding, and remembers the most units that were ever had of one card.
func (b *books) bind(binding *v1.Binding) {
	given, err := allocation.Read(binding.Annotations[allocation.Annotation], string(binding.UID))
	if err != nil {
		panic(err)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	own := map[string]int64{}
	for _, share := range given.Held() {
		own[given.Node+"/"+share.Card] = share.Units
	}
	b.pods[binding.Name] = own
	// Asked now: whoever deletes a pod may tell us later than the scheduler.
	maps.DeleteFunc(b.pods, func(name string, _ map[string]int64) bool { return !b.isThere(name) })
	cards := map[string]int64{}
	for _, pod := range b.pods {
		for card, units := range pod {
			cards[card] += units
			b.worst = max(b.worst, cards[card])
		}
	}
}

// A storm of pods that come and go never gets more of a card than there is, and all of it is free in the end.
func TestAStorm(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		nodes := make([]*sharenode.Node, 4)
		for place := range nodes {
			nodes[place] = node(fmt.Sprintf("gpu-%d", place), 4)
		}
		w := newWorld(t, nodes...)
		books := w.books()
		w.mutex.Lock()
		w.onBind = func(binding *v1.Binding) error {
			books.bind(binding)
			return nil
		}
		w.mutex.Unlock()
		random, alive := rand.New(rand.NewPCG(28, 1)), []string(nil)
		for number := range 200 {
			name := fmt.Sprintf("storm-%d", number)
			w.create(name, 1+random.IntN(16))
			w.waitSeen(name, true)
			alive = append(alive, name)
			if random.IntN(3) == 0 {
				place := random.IntN(len(alive))
				w.delete(alive[place])
				w.waitSeen(alive[place], false)
				alive = append(alive[:place], alive[place+1:]...)
			}
		}
		time.Sleep(2 * time.Second)
		for _, name := range alive {
			w.delete(name)
			w.waitSeen(name, false)
		}
		if books.worst > 16 || books.worst < 12 {
			t.Errorf("one card had %d units of 16", books.worst)
		}
		whole := numbered("whole", 16)
		for _, name := range whole {
			w.create(name, 16)
		}
		w.waitBound(whole...)
		w.eventually("no pod waits", func() bool { return w.factory.core.waiting.Len() == 0 })
	})
}
