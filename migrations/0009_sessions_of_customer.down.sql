begin;

drop index sessions_of_customer;
alter table sessions drop customer;

commit;
