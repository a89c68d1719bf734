package plugin

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"gpushare.io/scheduler/internal/waiting"
)

// tickTime is how often it is looked for what time alone changes.
const tickTime = time.Second

// waker wakes the pods that wait for a card when one may be free.
//
// The scheduler's own events do not tell it: a GPUShareNode is nothing that it knows, and an informer that tells it of
// every field of each would need more memory than the rest.
type waker struct {
	waiting *waiting.Pods
	// activate has the scheduler try pods.
	activate func(pods []*v1.Pod)
	// rest has the scheduler look no more at pods that are at rest.
	rest func(pods []*v1.Pod)

	mutex sync.Mutex
	// changed are nodes that have changed since the last look.
	changed map[string]bool
	// recent are nodes that have changed since the last tick: the scheduler may have heard of it after us, and have
	// refused the pods that we woke.
	recent map[string]bool
	signal chan struct{}
}

func newWaker(pods *waiting.Pods, activate, rest func([]*v1.Pod)) *waker {
	return &waker{
		waiting: pods, activate: activate, rest: rest,
		changed: map[string]bool{}, recent: map[string]bool{}, signal: make(chan struct{}, 1),
	}
}

// note says that more may be free on a node than before. It does not block.
func (w *waker) note(node string) {
	w.mutex.Lock()
	w.changed[node] = true
	w.mutex.Unlock()
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// run wakes pods until ctx ends.
func (w *waker) run(ctx context.Context, core *core, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
			w.look(core)
		case <-ticks:
			w.tick(core)
		}
	}
}

// look wakes the pods that fit a node which has changed.
func (w *waker) look(core *core) {
	w.mutex.Lock()
	changed := w.changed
	w.changed = map[string]bool{}
	for node := range changed {
		w.recent[node] = true
	}
	w.mutex.Unlock()
	for node := range changed {
		w.waiting.Changed(node, core.cluster)
		w.wake(node, core)
	}
}

// tick frees what has expired, and wakes those whose turn it is.
func (w *waker) tick(core *core) {
	w.mutex.Lock()
	recent := w.recent
	w.recent = map[string]bool{}
	w.mutex.Unlock()
	core.cluster.Expire()
	core.pauses.Tick()
	var pods []*v1.Pod
	if core.isSynced() {
		pods = core.soon.take()
	}
	for node := range recent {
		w.waiting.Changed(node, core.cluster)
		pods = append(pods, core.disappointed(node)...)
	}
	for _, node := range w.waiting.Open() {
		w.wake(node, core)
	}
	pods = append(pods, w.waiting.Preemptors(core.cluster, schedulersView{core})...)
	woken, resting := w.waiting.Rest(schedulersView{core})
	if pods = append(pods, woken...); len(pods) > 0 {
		w.activate(pods)
	}
	if len(resting) > 0 {
		w.rest(resting)
	}
}

// wake wakes the pods whose turn it is, unless the node takes none for a while.
func (w *waker) wake(node string, core *core) {
	if core.isPaused(node) {
		return
	}
	if pods := w.waiting.Next(node, core.cluster, schedulersView{core}); len(pods) > 0 {
		w.activate(pods)
	}
}
