"""The attack suites stand on the end-to-end harness and its fixtures."""
import importlib.util
import os
import sys

E2E = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e")
sys.path.insert(0, E2E)
_spec = importlib.util.spec_from_file_location("e2e_conftest", os.path.join(E2E, "conftest.py"))
_e2e = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_e2e)

place, start, shared, guarded = _e2e.place, _e2e.start, _e2e.shared, _e2e.guarded
pytest_configure, pytest_runtest_setup = _e2e.pytest_configure, _e2e.pytest_runtest_setup
pytest_terminal_summary = _e2e.pytest_terminal_summary
built_with_sanitizer = _e2e.built_with_sanitizer
