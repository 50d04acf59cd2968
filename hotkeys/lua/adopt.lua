-- Takes the owner under a new epoch from the process that holds it, and returns its entries. It
-- does not change the set.
return foreign_schema() or inventory(take((ownership())))
