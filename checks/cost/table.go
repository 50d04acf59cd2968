package cost

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// orderCount is the number of rows of the table.
const orderCount = 1_000_000

// shopCount is the number of shops that have the orders.
const shopCount = 100_000

// fillDatabase creates the table of orders. A note is 240 bytes long and ends with one of four
// words.
func fillDatabase(ctx context.Context, uri string) error {
	conn, err := pgx.Connect(ctx, uri)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	for _, statement := range []string{
		fmt.Sprintf(`create unlogged table orders as
			select id, id %% %d as shop, repeat(md5(id::text) || ' ', 7) || (array['paid', 'sent', 'open', 'late'])[1 + id %% 4] as note
			from generate_series(1, %d) id`, shopCount, orderCount),
		`create index on orders (id)`,
		`create index on orders (shop, id)`,
		`vacuum analyze orders`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("fill the database: %w", err)
		}
	}
	return nil
}
