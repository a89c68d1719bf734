package quantity

import "math/big"

// suffix is what stands behind a number, and the billionths that 1 of it are.
type suffix struct {
	text       string
	billionths *big.Int
}

// The two families, the largest first.
var (
	decimalSuffixes = decimals("E", "P", "T", "G", "M", "k", "", "m", "u", "n")
	binarySuffixes  = binaries("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
	suffixes        = byText(decimalSuffixes, binarySuffixes)
)

func decimals(texts ...string) []suffix {
	family := make([]suffix, len(texts))
	scale := big.NewInt(1)
	for place := len(texts) - 1; place >= 0; place-- {
		family[place] = suffix{texts[place], scale}
		scale = new(big.Int).Mul(scale, big.NewInt(1000))
	}
	return family
}

func binaries(texts ...string) []suffix {
	family := make([]suffix, len(texts))
	for place := len(texts) - 1; place >= 0; place-- {
		bits := uint(10 * (len(texts) - place))
		family[place] = suffix{texts[place], new(big.Int).Lsh(billion, bits)}
	}
	return family
}

func byText(families ...[]suffix) map[string]suffix {
	known := map[string]suffix{}
	for _, family := range families {
		for _, one := range family {
			known[one.text] = one
		}
	}
	return known
}
