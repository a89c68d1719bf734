package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Events of pods, the scheduler's view and reports of the plugin come late, each by another time. What is promised must
// fit all the same.

// life is a node with two cards, its kubelet and plugin, an API server, and a scheduler that hears of all of it late.
type life struct {
	t      *testing.T
	random *rand.Rand
	book   *Ledger
	now    time.Time
	due    []event
	// occupied are the units of pods that may run, by UID: from the choice of their cards until the kubelet has
	// released them.
	occupied map[string]*Holder
	// admitted are those that the kubelet has, alive those that the API server has.
	admitted map[string]*Holder
	alive    map[string]bool
	// view are the node's pods as the scheduler sees them.
	view   map[string]*Pod
	chosen int
	// reported, seen and shown are when the latest report, the ledger's latest event of a pod and the scheduler's are
	// heard of: each comes in its order.
	reported, seen, shown time.Time
}

type event struct {
	at time.Time
	do func()
}

func newLife(t *testing.T, seed uint64) *life {
	return &life{t: t, random: rand.New(rand.NewPCG(seed, 0)), book: New(), now: time.Unix(1000, 0),
		occupied: map[string]*Holder{}, admitted: map[string]*Holder{}, alive: map[string]bool{}, view: map[string]*Pod{}}
}

// after has something happen within a number of seconds.
func (l *life) after(most float64, do func()) {
	l.due = append(l.due, event{l.now.Add(l.upTo(most)), do})
}

// ordered is after, behind the last one of its kind.
func (l *life) ordered(last *time.Time, most float64, do func()) {
	at := l.now.Add(l.upTo(most))
	if !at.After(*last) {
		at = last.Add(1)
	}
	*last = at
	l.due = append(l.due, event{at, do})
}

func (l *life) upTo(seconds float64) time.Duration {
	return time.Duration(l.random.Float64() * seconds * float64(time.Second))
}

// report is the plugin's: what the kubelet has given out now.
func (l *life) report() {
	var written []string
	for place, name := range []string{"c0", "c1"} {
		sum, pods := int64(0), []string{}
		for uid, holder := range l.admitted {
			if own := holder.Cards[0]; own.Card == name {
				sum += own.Units
				pods = append(pods, fmt.Sprintf(`{"uid":%q,"units":%d}`, uid, own.Units))
			}
		}
		written = append(written, fmt.Sprintf(
			`{"uuid":%q,"index":%d,"units":8,"health":"Healthy","allocatedUnits":%d,"pods":[%s]}`,
			name, place, sum, strings.Join(pods, ",")))
	}
	share := shareNode(l.t, strings.Join(written, ","))
	l.ordered(&l.reported, 1.5, func() { l.book.SetShareNode(share) })
}

// ask has a pod choose its card.
func (l *life) ask() {
	var shown []*Pod
	for _, uid := range slices.Sorted(maps.Keys(l.view)) {
		shown = append(shown, l.view[uid])
	}
	uid, units := fmt.Sprint("p", l.chosen), fmt.Sprint(1+l.random.IntN(4))
	holder, _ := l.book.Node("n", shown).Reserve(uid, asking(units))
	if holder == nil {
		return
	}
	l.chosen++
	l.occupied[uid] = holder
	l.checkCard(holder.Cards[0].Card)
	if err := l.book.Reserve(holder); err != nil {
		l.t.Fatal(err)
	}
	l.view[uid] = &Pod{UID: uid, Node: "n"}
	l.after(1, func() { l.bind(holder) })
}

func (l *life) checkCard(name string) {
	sum := int64(0)
	for _, holder := range l.occupied {
		if own := holder.Cards[0]; own.Card == name {
			sum += own.Units
		}
	}
	if sum > 8 {
		l.t.Fatalf("%d units of %s are promised", sum, name)
	}
}

func (l *life) bind(holder *Holder) {
	uid, own := holder.UID, holder.Cards[0]
	if l.random.IntN(8) == 0 { // the bind fails
		delete(l.occupied, uid)
		delete(l.view, uid)
		l.book.Release(uid)
		return
	}
	text := fmt.Sprintf(`{"node":"n","uid":%q,"at":"","unit":"1Gi","containers":{},"cards":{%q:%d}}`,
		uid, own.Card, own.Units)
	pod, _ := ReadPod(uid, "n", map[string]string{"gpushare.io/allocation": text}, nil)
	l.alive[uid] = true
	l.ordered(&l.seen, 1, func() { l.book.SetPod(pod) })
	l.ordered(&l.shown, 1, func() { l.view[uid] = pod })
	l.after(2, func() { l.admit(holder) })
	l.after(12, func() { l.end(uid) })
}

// admit is the kubelet's: of a pod that it still knows.
func (l *life) admit(holder *Holder) {
	if l.alive[holder.UID] {
		l.admitted[holder.UID] = holder
		l.after(0.5, l.report)
	}
}

// end ends a pod: gracefully, where the kubelet is first, or by force, where it is last.
func (l *life) end(uid string) {
	if l.random.IntN(2) == 0 {
		delete(l.alive, uid)
		l.release(uid)
		l.after(1, func() { l.gone(uid) })
		return
	}
	l.gone(uid)
	if l.admitted[uid] != nil {
		l.after(10, func() { l.release(uid) })
	} else {
		l.release(uid)
	}
}

func (l *life) release(uid string) {
	delete(l.occupied, uid)
	if l.admitted[uid] != nil {
		delete(l.admitted, uid)
		l.after(0.5, l.report)
	}
}

func (l *life) gone(uid string) {
	delete(l.alive, uid)
	l.ordered(&l.seen, 1, func() { l.book.PodGone(uid, l.now) })
	l.ordered(&l.shown, 1, func() { delete(l.view, uid) })
}

// tick has everything happen that is due.
func (l *life) tick() {
	l.now = l.now.Add(50 * time.Millisecond)
	slices.SortStableFunc(l.due, func(a, b event) int { return a.at.Compare(b.at) })
	for len(l.due) > 0 && !l.due[0].at.After(l.now) {
		first := l.due[0]
		l.due = l.due[1:]
		first.do()
	}
	if l.random.IntN(20) == 0 {
		l.book.Expire(l.now)
	}
	if l.random.IntN(4) == 0 {
		l.ask()
	}
}

func TestNoUnitIsPromisedTwice(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			life := newLife(t, seed)
			life.report()
			for range 1200 {
				life.tick()
			}
			if life.chosen < 20 {
				t.Errorf("only %d pods got a card", life.chosen)
			}
		})
	}
}
