package main

import "github.com/hotparam/hotparam/internal/hotwords"

// Short names for the functions of package hotwords.
var (
	speedWords  = hotwords.Speed
	bytesWords  = hotwords.Bytes
	boundsWords = hotwords.Bounds
	causeWords  = hotwords.Cause
	rateWords   = hotwords.Rate
	countWords  = hotwords.Count
	sizeWords   = hotwords.Size
	spanWords   = hotwords.Span

	ruleWords      = hotwords.Rule
	thresholdWords = hotwords.Threshold

	originCount = hotwords.OriginCount
	plural      = hotwords.Plural
	thousands   = hotwords.Thousands
)
