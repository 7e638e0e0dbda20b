-- A tenant that is younger than the last analyze is not among the most common values,
-- so the planner took it for a row or two and any index of (p, tenant, …) for as good
-- as another: pages of its history read all of its events until the next analyze,
-- which comes after a tenth of the table has changed. Without statistics every tenant
-- is taken for the same share. Naming the type again, which changes no row, forgets
-- those that were there; it reads the table once for the index of tokens.
begin;

do $$
begin
    -- Citus refuses this of a distributed table, whose pieces are told one by one.
    if to_regclass('pg_dist_partition') is not null then
        if exists (select from pg_dist_partition where logicalrelid = 'events'::regclass) then
            if exists (select from run_command_on_shards('events', 'alter table %s alter tenant set statistics 0') where not success) then
                raise exception 'a worker could not be told; once all are reached: migrate force 9, then migrate up';
            end if;
            set local citus.enable_ddl_propagation = off;
        end if;
    end if;
    alter table events alter tenant set statistics 0;
    set local citus.enable_ddl_propagation = on;
    alter table events alter tenant type text collate "C";
end
$$;

commit;
