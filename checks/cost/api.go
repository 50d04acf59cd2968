package cost

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// allShops is the value of shop that no index serves.
const allShops = "all"

// newAPI returns the guarded API: orders of a shop or of all shops, with a word in their note, and
// an export, which is sorted.
//
// Orders of one shop take an index. Of all shops the latest with a common word are found at once.
// With a rare word the database reads the whole table.
func newAPI(pool *pgxpool.Pool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		word := query.Get("q")
		if query.Get("shop") == allShops {
			answer(w, r, pool, `select id from orders where note like '%' || $1 || '%' order by id desc limit 20`, word)
			return
		}
		shop, err := strconv.Atoi(query.Get("shop"))
		if err != nil {
			http.Error(w, "shop is not a number", http.StatusBadRequest)
			return
		}
		answer(w, r, pool, `select id from orders where shop = $1 and note like '%' || $2 || '%' order by id desc limit 20`, shop, word)
	})
	mux.HandleFunc("GET /export", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sort") == "note" {
			answer(w, r, pool, `select id from orders order by md5(note) limit 20`)
			return
		}
		answer(w, r, pool, `select id from orders order by id limit 20`)
	})
	return mux
}

// answer writes the number of rows that a query returns.
func answer(w http.ResponseWriter, r *http.Request, pool *pgxpool.Pool, query string, args ...any) {
	rows, err := pool.Query(r.Context(), query, args...)
	if err == nil {
		var ids []int
		if ids, err = pgx.CollectRows(rows, pgx.RowTo[int]); err == nil {
			fmt.Fprintln(w, len(ids), "orders")
			return
		}
	}
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
