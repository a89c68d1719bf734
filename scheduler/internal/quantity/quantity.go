// Package quantity reads amounts as Kubernetes reads them, adds them up and writes them.
//
// Source: ParseQuantity of k8s.io/apimachinery/pkg/api/resource. It says the same as core's
// placement/quantity.py.
package quantity

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// MaxAmount is the largest amount. Kubernetes documents that larger ones are capped.
const MaxAmount = math.MaxInt64

// maxDigits is how many digits decide what an amount is: 19 before the point, 9 behind it, 18 more by Ei.
const maxDigits = 64

var (
	errNoQuantity = errors.New("no quantity")
	errNegative   = errors.New("negative")
	errExponent   = errors.New("an exponent of more than 64 bits")

	pattern = regexp.MustCompile(
		`^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?$`)

	one      = big.NewInt(1)
	billion  = big.NewInt(1_000_000_000)
	greatest = new(big.Int).Mul(big.NewInt(MaxAmount), billion)
)

// Amount is an amount from 0 to MaxAmount, in whole billionths. The zero value is no amount at all: use Read.
type Amount struct{ billionths *big.Int }

// Read returns what Kubernetes reads from text, rounded up to billionths. A text that Kubernetes refuses
// counts as MaxAmount, not as nothing: it fits nowhere, so its pod waits.
func Read(text string) Amount {
	billionths, err := parse(text)
	if err != nil || billionths.Cmp(greatest) > 0 {
		return Amount{greatest}
	}
	return Amount{billionths}
}

// Ceil returns the amount rounded up to a whole number, as Quantity.Value does.
func (a Amount) Ceil() int64 {
	return ceilDiv(a.billionths, billion).Int64()
}

// Sum returns the sum of amounts, each read by Read: in binary notation where all are binary, else decimal.
func Sum(texts []string) string {
	total, binary := new(big.Int), len(texts) > 0
	for _, text := range texts {
		total.Add(total, Read(text).billionths)
		binary = binary && strings.HasSuffix(text, "i")
	}
	if binary {
		return format(total, binarySuffixes)
	}
	return format(total, decimalSuffixes)
}

// format writes an amount as the API server does: with the largest suffix that divides it.
func format(billionths *big.Int, family []suffix) string {
	if billionths.Sign() == 0 {
		return "0"
	}
	for _, candidate := range family {
		if number, ok := divide(billionths, candidate.billionths); ok {
			return number.String() + candidate.text
		}
	}
	if number, ok := divide(billionths, billion); ok {
		return number.String()
	}
	return billionths.String() + "n"
}

func divide(number, by *big.Int) (*big.Int, bool) {
	quotient, rest := new(big.Int).QuoRem(number, by, new(big.Int))
	return quotient, rest.Sign() == 0
}

// parse returns billionths. It refuses what is no quantity, and negative ones.
func parse(text string) (*big.Int, error) {
	match := pattern.FindStringSubmatch(text)
	if text == "" || match == nil {
		return nil, errNoQuantity
	}
	sign, whole, part, name := match[1], match[2], match[3], match[4]
	exponent, err := readExponent(match[5])
	if err != nil {
		return nil, err
	}
	digits := strings.TrimLeft(whole+part, "0")
	if digits != "" && sign == "-" {
		return nil, errNegative
	}
	return billionths(digits, exponent-len(part), suffixes[name]), nil
}

// readExponent returns the exponent in 32 bits, as Kubernetes converts it.
func readExponent(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	exponent, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errExponent
	}
	return int(int32(exponent)), nil
}

// billionths returns digits times 10 to the power times the scale, rounded up. Not exact far beyond MaxAmount:
// the author of a pod chooses how long the number is.
func billionths(digits string, power int, scale suffix) *big.Int {
	known, rest := digits, ""
	if len(digits) > maxDigits {
		known, rest = digits[:maxDigits], digits[maxDigits:]
	}
	number := wholeNumber(known)
	if strings.Trim(rest, "0") != "" {
		number.Add(number, one)
	}
	number.Mul(number, scale.billionths)
	power = max(-2*maxDigits, min(power+len(rest), maxDigits))
	factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(power, -power))), nil)
	if power >= 0 {
		return number.Mul(number, factor)
	}
	return ceilDiv(number, factor)
}

func wholeNumber(digits string) *big.Int {
	number := new(big.Int)
	if digits != "" {
		number.SetString(digits, 10)
	}
	return number
}

func ceilDiv(number, by *big.Int) *big.Int {
	quotient, rest := new(big.Int).QuoRem(number, by, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, one)
	}
	return quotient
}
