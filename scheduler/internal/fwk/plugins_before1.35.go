//go:build before1.35

package fwk

import "k8s.io/kubernetes/pkg/scheduler/framework"

// Before 1.35 in k8s.io/kubernetes.
type (
	BindPlugin          = framework.BindPlugin
	EnqueueExtensions   = framework.EnqueueExtensions
	FilterPlugin        = framework.FilterPlugin
	Handle              = framework.Handle
	NodeToStatusReader  = framework.NodeToStatusReader
	NominatingInfo      = framework.NominatingInfo
	Plugin              = framework.Plugin
	PostFilterPlugin    = framework.PostFilterPlugin
	PostFilterResult    = framework.PostFilterResult
	PreFilterExtensions = framework.PreFilterExtensions
	PreFilterPlugin     = framework.PreFilterPlugin
	PreFilterResult     = framework.PreFilterResult
	PreScorePlugin      = framework.PreScorePlugin
	ReservePlugin       = framework.ReservePlugin
	ScoreExtensions     = framework.ScoreExtensions
	ScorePlugin         = framework.ScorePlugin
	// SignFragment is nothing yet: pods are not batched, and SignPod is never called.
	SignFragment = any
	SignPlugin   = framework.Plugin
)

const (
	MaxNodeScore = framework.MaxNodeScore
	ModeOverride = framework.ModeOverride
)
