package page

import "github.com/hotparam/hotparam/internal/figure"

// Figures are the metrics of the page and its API.
var Figures = []figure.Figure[Stats]{
	figure.Gauge("page_streams", "Browsers and programs that follow the page's streams.",
		func(p *Stats) float64 { return float64(p.Streams) }).
		Explain("browsers and programs that follow `/api/v1/events` or the page; 32 at most"),
	figure.Counter("page_cut_streams_total", "Streams that were ended because their reader was too slow.",
		func(p *Stats) int64 { return int64(p.Cut) }).
		Explain("streams that were ended because their reader was too slow; it can resume after its last event"),
	figure.Counter("page_refused_streams_total", "Streams that were refused because too many were open.",
		func(p *Stats) int64 { return int64(p.Refused) }),
	figure.Counter("page_wrong_tokens_total", "Wrong tokens at the login and in header Authorization.",
		func(p *Stats) int64 { return int64(p.WrongTokens) }).
		Explain("wrong tokens at the login and in header Authorization; an address that sends ten is refused until it has waited"),
}

// ActFigures are the further metrics of a page that acts.
var ActFigures = []figure.Figure[Stats]{
	figure.Counter("page_actions_total", "Orders of people that were carried out: pin, block, allow and release.",
		func(p *Stats) int64 { return int64(p.Acts) }).
		Explain("orders of people that were carried out: pin, block, allow and release; `hotparam watch` shows each"),
	figure.Counter("page_refused_actions_total", "Orders and confirmations of people that were refused.",
		func(p *Stats) int64 { return int64(p.RefusedActs) }).
		Explain("orders and confirmations of people that were refused; the log has the reasons"),
}
