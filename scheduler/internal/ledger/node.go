package ledger

import (
	"slices"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
)

// Node is what is held of one node, and what follows from it. Only Add and TakeAway change it: they are for copies, made
// by Clone.
type Node struct {
	share   *sharenode.Node
	holders []*Holder
	// gone are the UIDs of pods that count as gone, their units as released by the kubelet.
	gone []string
	// changesElsewhere says whether the sums may change without a change of the node.
	changesElsewhere bool
	// uses are those of the cards of the GPUShareNode, in their order.
	uses []use
	// classes are those as which any card is in use, also one that the GPUShareNode does not name.
	classes cards.ClassSet
	// seen are the cards as each class sees them that the node serves.
	seen [len(cards.Classes) + 1][]cards.Card
}

// use is what is in use of one card.
type use struct {
	isUsed bool
	// class is what the card serves alone; none where two classes use it by mistake: it serves nobody else then.
	class cards.Class
	// units are booked, or given out by the kubelet, whichever is more for each pod.
	units int64
}

// NewNode returns the sums of the node of share, which is nil where the node has none. No two of holders are of the
// same pod. It keeps holders, and changes none of them.
func NewNode(share *sharenode.Node, holders []*Holder) *Node {
	node := &Node{share: share, holders: holders}
	node.count()
	return node
}

// Clone returns a copy for a question such as: what if some pods were gone.
func (n *Node) Clone() *Node {
	return &Node{share: n.share, holders: slices.Clone(n.holders), gone: slices.Clone(n.gone),
		uses: n.uses, classes: n.classes, seen: n.seen}
}

// Add counts a holder, in place of what the same pod had before.
func (n *Node) Add(holder *Holder) {
	isOfPod := func(other *Holder) bool { return other.UID == holder.UID }
	n.holders = append(slices.DeleteFunc(n.holders, isOfPod), holder)
	n.gone = slices.DeleteFunc(n.gone, func(uid string) bool { return uid == holder.UID })
	n.count()
}

// TakeAway answers for pods as if they were gone, and the kubelet had released their units: for pods that would be
// evicted.
func (n *Node) TakeAway(uids ...string) {
	for _, uid := range uids {
		if !n.isGone(uid) {
			n.gone = append(n.gone, uid)
		}
	}
	n.count()
}

func (n *Node) isGone(uid string) bool { return slices.Contains(n.gone, uid) }

// count works out what is in use of every card.
func (n *Node) count() {
	n.seen, n.classes = [len(n.seen)][]cards.Card{}, 0
	if n.share == nil {
		return
	}
	booked, elsewhere := n.bookings()
	n.uses = make([]use, len(n.share.Cards))
	for place := range n.share.Cards {
		card := &n.share.Cards[place]
		named := n.share.Card(card.UUID) // another one where two cards have the same UUID
		n.uses[place] = n.useOf(booked[named], &n.share.Cards[named])
		n.classes = n.classes.With(n.uses[place].class)
	}
	for _, booked := range elsewhere {
		n.classes = n.classes.With(n.useOf(booked, nil).class)
	}
	for _, resource := range n.share.Resources {
		n.seen[resource.Class] = n.cardsAs(resource.Class)
	}
}

// bookings returns what pods have of each card of the GPUShareNode, in the order of its cards, and of each other
// card, by UUID.
func (n *Node) bookings() ([][]booking, map[string][]booking) {
	booked := make([][]booking, len(n.share.Cards))
	var elsewhere map[string][]booking
	for _, holder := range n.holders {
		for _, own := range holder.Cards {
			one := booking{holder, inNodeUnit(n.share, holder, own), holder.MeaningOf(own.Card).Class}
			if place := n.share.Card(own.Card); place >= 0 {
				booked[place] = append(booked[place], one)
				continue
			}
			if elsewhere == nil {
				elsewhere = map[string][]booking{}
			}
			elsewhere[own.Card] = append(elsewhere[own.Card], one)
		}
	}
	return booked, elsewhere
}

// useOf returns the use of a card by those who have it booked and by those whom card reports; card is nil where the
// GPUShareNode does not name it.
func (n *Node) useOf(booked []booking, card *sharenode.Card) use {
	taken, now := booked, reported{}
	if card != nil {
		now = reportedBy(card)
	}
	if len(n.gone) > 0 {
		taken = slices.DeleteFunc(slices.Clone(booked), func(b booking) bool { return n.isGone(b.holder.UID) })
		now = now.without(n.isGone, booked)
	}
	allocated := now.unitsInUse(taken)
	if allocated == 0 && (now.lock == 0 || !n.share.IsMixed()) {
		return use{}
	}
	return use{true, n.classInUse(taken, &now), allocated}
}

// classInUse returns the class as which a card is in use; none where there are two, or it is not known.
func (n *Node) classInUse(taken []booking, now *reported) cards.Class {
	if !n.share.IsMixed() {
		return n.share.Resources[0].Class
	}
	var found cards.Class
	isFirst := true
	for _, one := range taken {
		if one.units == 0 {
			continue
		}
		if !isFirst && one.class != found {
			return 0
		}
		found, isFirst = one.class, false
	}
	isReported := now.lock != 0 || now.allocated != 0 || len(now.holders) > 0
	if isReported && !isFirst && now.lock != found {
		return 0
	}
	if isReported {
		return now.lock
	}
	return found
}

// amounts returns the units of a card, and those of them that are allocated, as a class sees it: a card that serves
// another class now is full.
func (n *Node) amounts(place int, class cards.Class) (units, allocated int64) {
	units, used := n.share.Cards[place].UnitsOf(class), n.uses[place]
	switch {
	case !used.isUsed:
		return units, 0
	case used.class == class:
		return units, used.units
	}
	return units, units
}

// cardsAs returns the cards with what is allocated of them now, as a class sees them.
func (n *Node) cardsAs(class cards.Class) []cards.Card {
	seen := make([]cards.Card, len(n.share.Cards))
	for place := range seen {
		seen[place] = n.cardAs(place, class)
	}
	return seen
}

func (n *Node) cardAs(place int, class cards.Class) cards.Card {
	card := &n.share.Cards[place]
	units, allocated := n.amounts(place, class)
	return cards.Card{
		UUID:      card.UUID,
		Index:     card.Index,
		Units:     units,
		Allocated: allocated,
		Open:      card.IsOpen(),
		NUMANode:  card.NUMANode,
		LinkGroup: card.LinkGroup,
		Lockable:  n.share.IsMixed() && !n.uses[place].isUsed,
	}
}

// Cards returns the cards of the GPUShareNode, by index, with what is allocated of them now, as a class sees them that
// the node serves: one that serves another class is full. The caller changes nothing of them.
func (n *Node) Cards(class cards.Class) []cards.Card { return n.seen[class] }
