package ledger

import (
	"slices"
	"testing"
	"time"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
)

func share(name string) *sharenode.Node {
	return &sharenode.Node{
		Name:      name,
		Cards:     []sharenode.Card{{UUID: "GPU-0", Units: 16, IsHealthy: true}},
		Resources: []cards.Resource{{Name: "gpushare.io/memory", Class: cards.Memory}},
	}
}

func holder(uid, node string, units int64) *Holder {
	return &Holder{UID: uid, Node: node, Cards: []cards.Share{{Card: "GPU-0", Units: units}}}
}

func TestVersionChangesWithTheNode(t *testing.T) {
	book, now := New(), time.Unix(0, 0)
	if version := book.Version("a").Number(); version != 0 {
		t.Errorf("an unknown node has version %d", version)
	}
	seen := map[uint64]string{}
	for _, step := range []struct {
		does string
		do   func()
	}{
		{"a GPUShareNode comes", func() { book.SetShareNode(share("a")) }},
		{"a reservation", func() { _ = book.Reserve(holder("1", "a", 4)) }},
		{"its release", func() { book.Release("1") }},
		{"an allocation", func() { book.SetPod(&Pod{UID: "2", Node: "a", holder: holder("2", "a", 4)}) }},
		{"the pod is bound elsewhere", func() { book.SetPod(&Pod{UID: "2", Node: "b", holder: holder("2", "a", 4)}) }},
		{"the pod goes", func() { book.PodGone("2", now) }},
		{"its units are free", func() { book.Expire(now.Add(UnreleasedTime)) }},
		{"another GPUShareNode", func() { book.SetShareNode(share("a")) }},
	} {
		step.do()
		version := book.Version("a").Number()
		if earlier, was := seen[version]; was {
			t.Errorf("%s: version %d as after: %s", step.does, version, earlier)
		}
		seen[version] = step.does
	}
}

func TestVersionStaysWhereNothingChanges(t *testing.T) {
	book := New()
	book.SetShareNode(share("a"))
	_ = book.Reserve(holder("1", "a", 4))
	before := book.Version("a").Number()
	book.SetPod(&Pod{UID: "1", Node: "a", holder: holder("1", "a", 4)})
	book.SetPod(&Pod{UID: "3", Node: "b", holder: holder("3", "b", 4)})
	if after := book.Version("a").Number(); after != before {
		t.Errorf("version %d, then %d", before, after)
	}
}

func TestLeavingAreThoseThatTheSchedulerDoesNotShow(t *testing.T) {
	book := New()
	book.SetShareNode(share("a"))
	for _, uid := range []string{"shown", "deleted", "gone"} {
		book.SetPod(&Pod{UID: uid, Node: "a", holder: holder(uid, "a", 4)})
	}
	book.SetPod(&Pod{UID: "claims", Node: "b", holder: holder("claims", "a", 4)})
	book.PodGone("gone", time.Unix(0, 0))
	if err := book.Reserve(holder("reserved", "a", 4)); err != nil {
		t.Fatal(err)
	}
	leaving := book.Leaving("a", func(uid string) bool { return uid == "shown" })
	if !slices.Equal(leaving, []string{"deleted", "gone"}) {
		t.Errorf("leaving: %v", leaving)
	}
}

func TestKnownCountsWhatTheLedgerHas(t *testing.T) {
	book := New()
	if book.Known("a") != nil {
		t.Error("an unknown node is known")
	}
	book.SetShareNode(share("a"))
	_ = book.Reserve(holder("1", "a", 4))
	node := book.Known("a")
	if free := node.Cards(cards.Memory)[0].Free(); free != 12 {
		t.Errorf("free: %d", free)
	}
	if !node.HasUnits("1") || node.HasUnits("2") {
		t.Error("other pods have units than those that have them")
	}
	if card := node.Card("GPU-0"); card.UnitsOf("1") != 4 || card.UnitsOf("2") != 0 {
		t.Errorf("units: %d, %d", card.UnitsOf("1"), card.UnitsOf("2"))
	}
}
