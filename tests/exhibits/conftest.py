def pytest_addoption(parser):
    parser.addoption("--rewrite-goldens", action="store_true", help="write the ledger of the exhibits anew")
