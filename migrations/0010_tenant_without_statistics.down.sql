begin;

alter table events alter tenant set statistics -1;

commit;
