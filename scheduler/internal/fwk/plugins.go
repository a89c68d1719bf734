//go:build !before1.35

package fwk

import fwk "k8s.io/kube-scheduler/framework"

// Since 1.35 in k8s.io/kube-scheduler.
type (
	BindPlugin          = fwk.BindPlugin
	EnqueueExtensions   = fwk.EnqueueExtensions
	FilterPlugin        = fwk.FilterPlugin
	Handle              = fwk.Handle
	NodeToStatusReader  = fwk.NodeToStatusReader
	NominatingInfo      = fwk.NominatingInfo
	Plugin              = fwk.Plugin
	PostFilterPlugin    = fwk.PostFilterPlugin
	PostFilterResult    = fwk.PostFilterResult
	PreFilterExtensions = fwk.PreFilterExtensions
	PreFilterPlugin     = fwk.PreFilterPlugin
	PreFilterResult     = fwk.PreFilterResult
	PreScorePlugin      = fwk.PreScorePlugin
	ReservePlugin       = fwk.ReservePlugin
	ScoreExtensions     = fwk.ScoreExtensions
	ScorePlugin         = fwk.ScorePlugin
	SignFragment        = fwk.SignFragment
	SignPlugin          = fwk.SignPlugin
)

const (
	//lint:ignore SA1019 1.35 has it by this name alone.
	MaxNodeScore = fwk.MaxNodeScore
	ModeOverride = fwk.ModeOverride
)
