package cards

import "fmt"

// memoryMode gives all units of a request on one card.
type memoryMode struct{}

func (memoryMode) Choose(cards []Card, amount int64, strategy Strategy) []Share {
	return pick(cards, 1, amount, strategy)
}

func (memoryMode) Reason(cards []Card, chosen []Share, strategy Strategy) string {
	return choiceReason(cards, chosen[0].Units, chosen, strategy)
}

func (memoryMode) Greatest(units []int64) int64 {
	greatest := int64(0)
	for _, free := range units {
		greatest = max(greatest, free)
	}
	return greatest
}

// Explain names the biggest card where even an empty one would not suffice.
func (memoryMode) Explain(amount int64, room Room) string {
	biggest := ""
	if amount > room.Possible {
		biggest = fmt.Sprintf(", biggest card %d", room.Possible)
	}
	return fmt.Sprintf("insufficient GPU memory in one card: asked %d, largest free %d%s%s",
		amount, room.Greatest, biggest, room.remark())
}

func (memoryMode) Containers(part Part, _ []string, cards []string) []ContainerShares {
	given := make([]ContainerShares, len(part.Containers))
	for place, amount := range part.Containers {
		given[place] = ContainerShares{amount.Container, []Share{{cards[0], amount.Units}}}
	}
	return given
}
