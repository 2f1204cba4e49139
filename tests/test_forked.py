"""Copies of a process that help it: they leave it and its files alone, and end."""

import os
import signal
import sys
import threading
import time

import pytest

from vnlem.kernels.numba.forked import Fork, can_fork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")


def test_a_process_with_other_threads_is_not_copied():
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        assert not can_fork()
    finally:
        done.set()
        other.join()


def test_only_the_main_thread_copies_its_process():
    found = []
    thread = threading.Thread(target=lambda: found.append(can_fork()))
    thread.start()
    thread.join()
    assert found == [False]


def test_a_copy_works_and_ends(tmp_path, capfd):
    def work():
        print("to nobody")
        (tmp_path / "done").write_text(str(os.getpid()))

    copy = Fork(work)
    assert copy.wait() == 0
    assert copy.poll() == 0
    assert int((tmp_path / "done").read_text()) != os.getpid()
    assert capfd.readouterr() == ("", "")


def test_an_error_ends_the_copy_in_silence(capfd):
    copy = Fork(lambda: 1 / 0)
    assert copy.wait() == 1
    assert capfd.readouterr() == ("", "")


def test_a_copy_can_be_ended():
    copy = Fork(lambda: time.sleep(60))
    assert copy.poll() is None
    copy.kill()
    assert copy.wait() == -signal.SIGKILL
    copy.kill()  # there is nobody left


def test_a_copy_that_somebody_else_has_waited_for_counts_as_ended():
    copy = Fork(lambda: None)
    os.waitpid(copy._process, 0)
    assert copy.poll() == 0


def test_a_copy_keeps_no_file_open():
    reading, writing = os.pipe()
    copy = Fork(lambda: time.sleep(60))
    try:
        os.close(writing)
        assert os.read(reading, 1) == b""  # would wait for the copy if it still had the other end
    finally:
        copy.kill()
        copy.wait()
        os.close(reading)
