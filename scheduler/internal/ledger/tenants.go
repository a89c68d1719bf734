package ledger

import (
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
)

// tenant is a pod that has units of a card: by annotation or reservation, by its kubelet, or by both. Amounts are in the
// node's unit.
type tenant struct {
	uid string
	// booked is what it has by annotation or reservation, given what its kubelet has given to all of its containers together,
	// and least what the largest of them has of that.
	booked, given, least int64
	// class is that of the booked units; none where it is not known.
	class             cards.Class
	isBooked, isGiven bool
}

// withGiven returns those who have units booked, and those to whom the kubelet has given units, each pod once.
func withGiven(booked []tenant, holders []sharenode.Holder) []tenant {
	all := booked
	for place := range holders {
		holder := &holders[place]
		at := placeOf(booked, holder.UID)
		if at < 0 {
			at, all = len(all), append(all, tenant{uid: holder.UID})
		}
		all[at].isGiven, all[at].given, all[at].least = true, holder.Units, holder.Least
	}
	return all
}

// placeOf is negative where uid is none of tenants.
func placeOf(tenants []tenant, uid string) int {
	for place := range tenants {
		if tenants[place].uid == uid {
			return place
		}
	}
	return -1
}

// sums are what the tenants of a card have together, and what its node's plugin reports, also once some of them have left.
type sums struct {
	// card is nil where the GPUShareNode does not name it.
	card *sharenode.Card
	// lends says whether some pod that is reported has less than its containers together: init containers lend to the next
	// ones.
	lends bool
	// isLater says that the plugin will have reported who has left; freed are the units that it will report no more.
	isLater bool
	freed   int64
	// booked are units that pods have booked, byClass how many pods have booked any of a class.
	booked  int64
	byClass [len(cards.Classes) + 1]int64
	// holders are how many pods are reported; given and least what they have.
	holders, given, least int64
	// both are of the pods that have units booked and are reported.
	both struct{ booked, given, least, mostGiven, mostLeast int64 }
}

func sumsOf(card *sharenode.Card, tenants []tenant) sums {
	all := sums{card: card}
	for place := range tenants {
		all.count(&tenants[place], 1)
	}
	all.lends = all.given > all.reported()
	return all
}

// reported returns the units that the kubelet has given out by the node's plugin.
func (s *sums) reported() int64 {
	if s.card == nil {
		return 0
	}
	return s.card.Allocated
}

// leave has a tenant gone, and its units released by the kubelet.
func (s *sums) leave(one *tenant) {
	s.isLater = true
	s.count(one, -1)
	if one.isGiven {
		s.freed += s.heldOf(one)
	}
}

// heldOf returns what the kubelet has given to a pod as a whole. Where some init container on the card lends its units to the
// next one, a pod that has units booked counts with its largest container alone.
func (s *sums) heldOf(one *tenant) int64 {
	if s.lends && one.isBooked {
		return one.least
	}
	return one.given
}

// count counts a tenant once more, or once less.
func (s *sums) count(one *tenant, times int64) {
	if one.isBooked {
		s.booked += times * one.booked
		if one.booked != 0 {
			s.byClass[one.class] += times
		}
	}
	if one.isGiven {
		s.holders += times
		s.given += times * one.given
		s.least += times * one.least
	}
	if one.isBooked && one.isGiven {
		s.both.booked += times * one.booked
		s.both.given += times * one.given
		s.both.least += times * one.least
		s.both.mostGiven += times * max(one.booked, one.given)
		s.both.mostLeast += times * max(one.booked, one.least)
	}
}

// allocated returns what the plugin reports that the kubelet has given out, or will report.
func (s *sums) allocated() int64 {
	if s.isLater {
		return max(0, s.reported()-s.freed)
	}
	return s.reported()
}

// lock returns for which class the plugin reports the card to be locked, or will report.
func (s *sums) lock() cards.Class {
	if s.card == nil || s.isLater && s.holders == 0 && s.allocated() == 0 {
		return 0
	}
	return s.card.Lock
}

// unitsInUse returns the units that nobody else may get: booked, or given out by the kubelet.
//
//  1. A pod that is in both counts once, with the larger figure.
//  2. Units whose holder is not named count, too.
//  3. However little is booked, the result is never less than what the kubelet has given out.
//  4. Pods that are not booked have at most what the total leaves, whatever their init containers lend.
func (s *sums) unitsInUse() int64 {
	allocated := s.allocated()
	total, byPod := max(allocated, s.least), s.both.mostGiven
	if s.given > allocated { // some pod lends
		byPod = s.both.mostLeast
	}
	others := min(max(total, s.given)-s.both.given, total-s.both.least)
	return max(byPod+others, total) + s.booked - s.both.booked
}

// class returns the class as which a card is in use that is open to several; none where there are two, or it is not known.
func (s *sums) class() cards.Class {
	booked, classes := cards.Class(0), 0
	for class, pods := range s.byClass {
		if pods > 0 {
			booked, classes = cards.Class(class), classes+1
		}
	}
	lock := s.lock()
	isReported := lock != 0 || s.allocated() != 0 || s.holders > 0
	switch {
	case classes > 1, isReported && classes == 1 && lock != booked:
		return 0
	case isReported:
		return lock
	}
	return booked
}

// Card is a card of a node, for the question: would there be room if some of those went who have units of it. It is a
// value: what is taken away from a copy the original keeps.
type Card struct {
	node    *Node
	place   int
	tenants map[string]*tenant
	sums    sums
}

// Card returns a card of the GPUShareNode by its UUID, which it names.
func (n *Node) Card(uuid string) Card {
	place := n.share.Card(uuid)
	card := Card{n, place, make(map[string]*tenant, len(n.tenants[place])), n.sumsOf(place)}
	for at := range n.tenants[place] {
		if one := &n.tenants[place][at]; !n.isGone(one.uid) {
			card.tenants[one.uid] = one
		}
	}
	return card
}

// UnitsOf returns what a pod has of the card, in the node's unit: what is booked, or what the kubelet has given out,
// whichever is more.
func (c *Card) UnitsOf(uid string) int64 {
	if one := c.tenants[uid]; one != nil {
		return max(one.booked, one.given)
	}
	return 0
}

// TakeAway answers for a pod as if it was gone, and the kubelet had released its units. No pod may be taken away twice.
func (c *Card) TakeAway(uid string) {
	c.sums.isLater = true
	if one := c.tenants[uid]; one != nil {
		c.sums.leave(one)
	}
}

// Fits says whether the card has units left to give to a class that the node serves.
func (c *Card) Fits(class cards.Class, units int64) bool {
	one := c.node.cardAs(c.place, class, c.node.useBy(&c.sums))
	return one.Fits(units)
}
