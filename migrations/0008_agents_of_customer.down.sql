begin;

drop index events_agents_of_customer;

commit;
