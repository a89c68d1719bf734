package cards

// Why a request gets its cards, for people.
const (
	only     = "only card with room"
	inUse    = "in use already, so that unused cards stay free"
	tightest = "tightest card that fits"
	emptiest = "emptiest card that fits"
	first    = "first of the cards that fit equally well"
	linked   = "smallest group of linked cards that fits"
	numaNode = "smallest NUMA node that fits"
)

// choiceReason returns why those chosen of cards get units each.
func choiceReason(cards []Card, units int64, chosen []Share, strategy Strategy) string {
	fitting := fittingCards(cards, units)
	var taken []*Card
	for _, card := range fitting {
		if _, is := unitsOn(chosen, card.UUID); is {
			taken = append(taken, card)
		}
	}
	if len(taken) == len(fitting) {
		return only
	}
	alike := lockableAs(taken, fitting)
	if len(alike) == len(taken) {
		return inUse
	}
	return preferred(alike, strategy)
}

// lockableAs returns those of fitting that are lockable, or not, as one of taken is.
func lockableAs(taken, fitting []*Card) []*Card {
	var seen [2]bool
	for _, card := range taken {
		seen[bit(card.Lockable)] = true
	}
	var alike []*Card
	for _, card := range fitting {
		if seen[bit(card.Lockable)] {
			alike = append(alike, card)
		}
	}
	return alike
}

func preferred(cards []*Card, strategy Strategy) string {
	for _, card := range cards {
		if card.Free() != cards[0].Free() {
			if strategy == Spread {
				return emptiest
			}
			return tightest
		}
	}
	return first
}

func bit(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
