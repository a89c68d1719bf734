package quantity

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

var (
	memoryPattern  = regexp.MustCompile(`^([0-9]{1,40})(?:\.([0-9]{1,40}))?([numkMGTPE]|[KMGTPE]i)?$`)
	memorySuffixes = []string{"", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"}
)

// ReadMemory returns the bytes that text names, with a suffix that makes sense for memory: what the schemas of
// our own API and inventories take, which is less than Kubernetes reads. It refuses what is no such quantity,
// and what is no whole number of bytes.
func ReadMemory(text string) (*big.Int, error) {
	match := memoryPattern.FindStringSubmatch(text)
	if match == nil || !slices.Contains(memorySuffixes, match[3]) {
		return nil, fmt.Errorf("%q is not a quantity of memory such as 16Gi, 512Mi or 100M", text)
	}
	number := wholeNumber(match[1] + match[2])
	number.Mul(number, suffixes[match[3]].billionths)
	bytes, isWhole := divide(number, wholeNumber("1"+strings.Repeat("0", 9+len(match[2]))))
	if !isWhole {
		return nil, fmt.Errorf("%q is not a whole number of bytes", text)
	}
	return bytes, nil
}
