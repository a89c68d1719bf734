package ledger

import (
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/jsontext"
	"gpushare.io/scheduler/internal/sharenode"
	"gpushare.io/scheduler/internal/unit"
)

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
