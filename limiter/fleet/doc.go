// Package fleet holds one limit over all instances of a service without a call for each request.
//
// An instance holds permits of a key's bucket in advance, its [Stock]. A request takes one of
// them, which is one atomic operation. From time to time the instance settles with a [Lender],
// such as redislimiter's Store. It states its spent, held and wanted permits.
//
//	request ─► Stock.Take ─► held permits               stock.go, clock.go
//	              │ none
//	              ▼
//	           Stock.Borrow ─► line, until a settlement  borrow.go, queue.go
//	              ▲
//	Fleet.Run ─► Ask ─► Lender ─► Answer                 fleet.go, settle.go, demand.go, lender.go, fit.go
//
// # The bound
//
// What is free in the bucket and what instances hold is together at most the burst, since held
// permits count as missing and are not earned again before they are spent, returned or expired.
// So in any window w all instances together admit at most
//
//	burst + rate × w
//
// as one bucket does, however late they settle and whatever messages are lost. A permit ends four
// periods after it was asked for, by the instance's clock from the sending and by the Lender's
// from the receipt, so an instance never spends what the Lender takes for ended. A crash costs the
// permits of one stock until they end.
//
// How much an instance gets is a question of use and fairness alone. It asks for the demand of a
// period and a round trip. The Lender grants in proportion to demand when there is not enough.
//
// # When the Lender is unavailable
//
// Stocks last for up to four periods. Then each instance has its part of the limit by the last
// known number of instances, or passes or refuses all: see [rules.OutagePolicy]. Its admissions
// are charged when the Lender is back. If k of N instances cannot reach it while the others can,
// all together admit up to (1 + k/N) × rate.
//
// # Which limits fit
//
// Buckets fit, if they are large enough (fit.go). A stock is the permits of a period. A limit of a
// few permits a second has none to hold, so each request asks for it.
package fleet
