-- A signed payload is about 3 KB and hashes do not compress: PostgreSQL's default
-- would try to, and then move it to a table of its own, in two rows with an index
-- entry each. Up to a page it stays in its row.
alter table events set (toast_tuple_target = 8160);
