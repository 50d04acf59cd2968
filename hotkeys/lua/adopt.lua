-- Takes the owner under a new epoch, whoever has it, and tells what it has. Nothing
-- of the set is changed.
return foreign_schema() or inventory(take((ownership())))
