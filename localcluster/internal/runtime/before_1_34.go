//go:build before1.34

package runtime

import cri "k8s.io/cri-api/pkg/apis/runtime/v1"

// imageOf fills in the field by the name that another generator of the API gave it.
func imageOf(bytes uint64) *cri.Image { return &cri.Image{Size_: bytes} }
