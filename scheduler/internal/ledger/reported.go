package ledger

import (
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/jsontext"
	"gpushare.io/scheduler/internal/sharenode"
	"gpushare.io/scheduler/internal/unit"
)

// booking is what one pod has of one card by annotation or reservation, in the node's unit.
type booking struct {
	holder *Holder
	units  int64
	class  cards.Class // none where it is not known
}

// reported is what a node's plugin says of one card, perhaps as it will when some pods are gone.
type reported struct {
	allocated int64
	holders   []sharenode.Holder
	lock      cards.Class
}

func reportedBy(card *sharenode.Card) reported {
	return reported{card.Allocated, card.Holders, card.Lock}
}

// lends says whether some holder has less than its containers together: init containers lend to the next ones.
func (r *reported) lends() bool {
	named := int64(0)
	for place := range r.holders {
		named += r.holders[place].Units
	}
	return named > r.allocated
}

// without returns the card as the plugin will report it when the pods that are gone are gone. What they have by
// our own records tells how much a pod with lending init containers holds as a whole.
func (r reported) without(isGone func(uid string) bool, booked []booking) reported {
	lends, freed := r.lends(), int64(0)
	var left []sharenode.Holder
	for _, holder := range r.holders {
		switch {
		case !isGone(holder.UID):
			left = append(left, holder)
		case lends && isBooked(booked, holder.UID):
			freed += holder.Least
		default:
			freed += holder.Units
		}
	}
	after := reported{max(0, r.allocated-freed), left, r.lock}
	if after.allocated == 0 && len(left) == 0 {
		after.lock = 0
	}
	return after
}

func isBooked(booked []booking, uid string) bool {
	_, is := bookedBy(booked, uid)
	return is
}

func bookedBy(booked []booking, uid string) (int64, bool) {
	for place := range booked {
		if booked[place].holder.UID == uid {
			return booked[place].units, true
		}
	}
	return 0, false
}

// unitsInUse returns the units that nobody else may get: booked, or given out by the kubelet.
//
//  1. A pod that is in both counts once, with the larger figure.
//  2. Units whose holder is not named count, too.
//  3. However little is booked, the result is never less than what the kubelet has given out.
//  4. Pods that are not booked have at most what the total leaves, whatever their init containers lend.
func (r *reported) unitsInUse(booked []booking) int64 {
	named, least, notGiven := int64(0), int64(0), sumOf(booked)
	for place := range r.holders {
		named += r.holders[place].Units
		least += r.holders[place].Least
	}
	total, lends := max(r.allocated, least), named > r.allocated
	others, most, byPod := max(total, named), total, int64(0)
	for place := range r.holders {
		holder := &r.holders[place]
		units, is := bookedBy(booked, holder.UID)
		if !is {
			continue
		}
		others -= holder.Units
		most -= holder.Least
		notGiven -= units
		if lends {
			byPod += max(units, holder.Least)
		} else {
			byPod += max(units, holder.Units)
		}
	}
	return max(byPod+min(others, most), total) + notGiven
}

func sumOf(booked []booking) int64 {
	sum := int64(0)
	for place := range booked {
		sum += booked[place].units
	}
	return sum
}

// surelyGiven returns the units of a card that the kubelet has given to a pod as a whole: what its init containers
// lend to the next ones counts once.
func surelyGiven(card *sharenode.Card, uid string) int64 {
	var own *sharenode.Holder
	others := int64(0)
	for place := range card.Holders {
		if holder := &card.Holders[place]; holder.UID == uid {
			own = holder
		} else {
			others += holder.Least
		}
	}
	if own == nil {
		return 0
	}
	return max(own.Least, min(own.Units, card.Allocated-others))
}

// isReported says whether a GPUShareNode says that the kubelet has given units to a pod.
func isReported(share *sharenode.Node, uid string) bool {
	if share == nil {
		return false
	}
	for place := range share.Cards {
		if share.Cards[place].IsHeldBy(uid) {
			return true
		}
	}
	return false
}

// inNodeUnit returns what a holder has of a card in the unit of the node, rounded up. Not less than it says before
// the kubelet is known to have the pod: to a pod that was bound while the unit changed it gives as many units, of
// the size that they have by then.
func inNodeUnit(share *sharenode.Node, holder *Holder, own cards.Share) int64 {
	meaning := holder.MeaningOf(own.Card)
	if meaning == (unit.Meaning{}) || share == nil || len(share.Units) == 0 || isOf(share, meaning) {
		return own.Units
	}
	wanted := share.UnitOf(meaning.Class).Meaning
	if wanted == (unit.Meaning{}) {
		wanted = share.Units[0].Meaning
	}
	converted, ok := unit.Convert(own.Units, meaning, wanted, jsontext.MaxNumber)
	switch {
	case !ok: // no card serves two classes
		return max(own.Units, unitsOf(share, own.Card))
	case isReported(share, holder.UID):
		return converted
	}
	return max(own.Units, converted)
}

func isOf(share *sharenode.Node, meaning unit.Meaning) bool {
	return share.UnitOf(meaning.Class).Meaning == meaning
}

// unitsOf returns the units of a card; 0 where the node does not have it.
func unitsOf(share *sharenode.Node, card string) int64 {
	if place := share.Card(card); place >= 0 {
		return share.Cards[place].Units
	}
	return 0
}
