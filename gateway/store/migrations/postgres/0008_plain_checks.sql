-- Only SQLite's checks are put in other words: PostgreSQL's cost next to nothing as they are.

SELECT 'nothing to change';
